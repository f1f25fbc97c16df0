#!/usr/bin/env python3
"""Writes the golden files of tests/oracle: tiny models with loss, logits and gradients computed by PyTorch.

Needs torch, transformers and safetensors (not needed to build or test headroom: the files are committed).
Usage: make_oracle.py [OUTPUT_DIR [CASE...]]     (default: the folder of this script, every case; the same versions give the
same bytes)

Per case: model/ (config.json, model.safetensors), batch.json, expected.json, expected_logits.safetensors,
expected_grads.safetensors. README.md in this folder describes the files and the tolerances.
"""
import contextlib
import copy
import json
import os
import sys

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.set_float32_matmul_precision('highest')

LLAMA = dict(vocab_size=131, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)
SMALL = dict(LLAMA, hidden_size=32, intermediate_size=56, num_attention_heads=4, num_key_value_heads=2)
TINY = dict(vocab_size=67, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
            max_position_embeddings=64)
ENCODER = dict(vocab_size=131, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

# name: (config class, arguments, what is special)
CASES = {
    'llama_gqa_tied': (transformers.LlamaConfig, dict(LLAMA, tie_word_embeddings=True, rope_parameters=dict(
        rope_type='default', rope_theta=10000.0)), 'grouped queries 6:2, tied embeddings'),
    'llama_rope_llama3': (transformers.LlamaConfig, dict(SMALL, tie_word_embeddings=False, rope_parameters=dict(
        rope_type='llama3', rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=32)), 'llama3 rope scaling: all three frequency bands occur'),
    'llama_rope_linear': (transformers.LlamaConfig, dict(SMALL, tie_word_embeddings=False, rope_parameters=dict(
        rope_type='linear', rope_theta=10000.0, factor=4.0)), 'linear rope scaling, config.json in the older dialect'),
    'qwen2_bias': (transformers.Qwen2Config, dict(SMALL, tie_word_embeddings=True, rope_parameters=dict(
        rope_type='default', rope_theta=1000000.0)), 'biases on q, k and v'),
    'mistral_window': (transformers.MistralConfig, dict(SMALL, tie_word_embeddings=False, sliding_window=7, head_dim=12,
        rope_parameters=dict(rope_type='default', rope_theta=10000.0)), 'sliding window 7, head_dim != hidden / heads'),
    'gpt2': (transformers.GPT2Config, dict(vocab_size=131, n_positions=64, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=2), 'learnt positions, LayerNorm, fused qkv, GELU'),
    'qwen3': (transformers.Qwen3Config, dict(SMALL, tie_word_embeddings=True, head_dim=12, rope_parameters=dict(
        rope_type='default', rope_theta=1000000.0)), 'RMS norms of the queries and keys of each head'),
    'olmo2': (transformers.Olmo2Config, dict(SMALL, tie_word_embeddings=False, rope_parameters=dict(
        rope_type='default', rope_theta=500000.0)), 'norms after attention and MLP; query and key norms over all heads'),
    'gemma2': (transformers.Gemma2Config, dict(SMALL, head_dim=12, sliding_window=7, query_pre_attn_scalar=10,
        attn_logit_softcapping=4.0, final_logit_softcapping=6.0, rms_norm_eps=1e-6, rope_parameters=dict(
        rope_type='default', rope_theta=10000.0)), 'soft caps, alternating windows, four norms a layer, scaled embeddings'),
    'gemma3': (transformers.Gemma3TextConfig, dict(SMALL, num_hidden_layers=3, head_dim=12, sliding_window=7,
        num_key_value_heads=1, query_pre_attn_scalar=10, rms_norm_eps=1e-6, sliding_window_pattern=3, rope_parameters={
        'full_attention': dict(rope_type='linear', factor=8.0, rope_theta=1000000.0),
        'sliding_attention': dict(rope_type='default', rope_theta=10000.0)}),
        'query and key norms, two rotary bases, windows in two of three layers, one key-value head'),
    'gpt_neox': (transformers.GPTNeoXConfig, dict(vocab_size=131, hidden_size=48, intermediate_size=80,
        num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=64, tie_word_embeddings=False,
        rope_parameters=dict(rope_type='default', rope_theta=10000.0, partial_rotary_factor=0.25)),
        'qkv fused head by head, a quarter of the channels rotates, parallel residual, LayerNorm, exact GELU'),
    'gpt_neox_sequential': (transformers.GPTNeoXConfig, dict(vocab_size=131, hidden_size=32, intermediate_size=56,
        num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, tie_word_embeddings=False,
        use_parallel_residual=False, attention_bias=False, rope_parameters=dict(
        rope_type='default', rope_theta=10000.0, partial_rotary_factor=1.0)), 'GPT-NeoX without parallel residual'),
    'phi3_longrope': (transformers.Phi3Config, dict(SMALL, hidden_size=64, tie_word_embeddings=True, sliding_window=19,
        pad_token_id=0, original_max_position_embeddings=16, rope_parameters=dict(rope_type='longrope',
        rope_theta=10000.0, partial_rotary_factor=0.75, short_factor=[1.0, 1.0, 1.1, 1.2, 1.3, 1.5],
        long_factor=[1.0, 1.2, 1.7, 2.5, 4.0, 6.5], original_max_position_embeddings=16)),
        'fused qkv and gate_up, partial rotary, LongRoPE beyond the original context'),
    'starcoder2': (transformers.Starcoder2Config, dict(SMALL, sliding_window=9, norm_epsilon=1e-5,
        rope_parameters=dict(rope_type='default', rope_theta=100000.0)),
        'LayerNorm, biases everywhere, plain MLP with tanh GELU, sliding window 9'),
    'bert_masked': (transformers.BertConfig, dict(ENCODER, type_vocab_size=2, layer_norm_eps=1e-12),
        'encoder: both directions, padding, learnt positions, token types, norms after the sums, masked tokens'),
    'bert_classes': (transformers.BertConfig, dict(ENCODER, type_vocab_size=2, layer_norm_eps=1e-12, num_labels=3),
        'a class per sequence, read from the first token through a layer with tanh'),
    'roberta_masked': (transformers.RobertaConfig, dict(ENCODER, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1),
        'BERT with positions from behind the padding id on, and names of its own'),
    'roberta_classes': (transformers.RobertaConfig, dict(ENCODER, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1,
        num_labels=5), 'a class per sequence, with the names of RoBERTa'),
    'gpt_neox_classes': (transformers.GPTNeoXConfig, dict(vocab_size=131, hidden_size=32, intermediate_size=56,
        num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, tie_word_embeddings=False, num_labels=3,
        pad_token_id=0, rope_parameters=dict(rope_type='default', rope_theta=10000.0, partial_rotary_factor=0.25)),
        'a class per sequence, read from the last token that is not padding'),
    'mixtral': (transformers.MixtralConfig, dict(SMALL, num_local_experts=4, num_experts_per_tok=2,
        tie_word_embeddings=False, rope_parameters=dict(rope_type='default', rope_theta=10000.0)),
        'two of four experts in every layer, weights that sum to one'),
    'qwen3_moe': (transformers.Qwen3MoeConfig, dict(SMALL, num_hidden_layers=3, head_dim=12, num_experts=6,
        num_experts_per_tok=3, moe_intermediate_size=20, norm_topk_prob=False, mlp_only_layers=[1],
        tie_word_embeddings=False, rope_parameters=dict(rope_type='default', rope_theta=10000.0)),
        'three of six small experts with their plain probabilities, a layer without experts, query and key norms'),
    # The padding id also occurs inside rows: lookups give its embedding no gradient.
    'llama_padding': (transformers.LlamaConfig, dict(TINY, num_key_value_heads=1, tie_word_embeddings=False, pad_token_id=-1,
        bos_token_id=1, eos_token_id=2, rope_parameters=dict(rope_type='default', rope_theta=10000.0)),
        'padding inside rows, untied; the padding id counts from the end of the vocabulary'),
    'gemma2_padding': (transformers.Gemma2Config, dict(TINY, num_key_value_heads=1, head_dim=8, query_pre_attn_scalar=8,
        rope_parameters=dict(rope_type='default', rope_theta=10000.0)),
        'padding inside rows, tied; config.json names no padding id'),
    'bert_padding': (transformers.BertConfig, dict(TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        type_vocab_size=2, layer_norm_eps=1e-12), 'padding inside rows and behind them, a tied head for masked tokens'),
    'roberta_padding': (transformers.RobertaConfig, dict(TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, num_labels=3),
        'padding inside rows and behind them: positions leave it out, and its own has no gradient either'),
}
PADDED = (27, 19, 25, 8)  # tokens in the rows of cases with padding
FIRST = ('llama_gqa_tied', 'llama_rope_llama3', 'llama_rope_linear', 'qwen2_bias', 'mistral_window', 'gpt2')
ROWS, LENGTH, IGNORED = 4, 27, -100


def objective(config):
    """The kind of labels: the tokens themselves, masked tokens, or classes."""
    if config.num_labels != 2:  # the default
        return 'classes'
    return 'masked' if config.model_type in ('bert', 'roberta') else 'tokens'


def has_experts(config):
    return getattr(config, 'num_local_experts', 0) > 0


def head_class(config):
    return {'tokens': transformers.AutoModelForCausalLM, 'masked': transformers.AutoModelForMaskedLM,
            'classes': transformers.AutoModelForSequenceClassification}[objective(config)]


def make_model(config_class, arguments, generator):
    """A model with weights large enough that attention, norms and biases all matter."""
    config = config_class(**arguments)
    config._attn_implementation = 'eager'
    config._experts_implementation = 'eager'
    config.use_cache = False
    model = head_class(config).from_config(config, attn_implementation='eager').float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if 'norm' in name.lower() or '.ln_' in name:
                unit = config.model_type.startswith('gemma') or not name.endswith('weight')
                parameter.copy_(0.1 * noise + (0.0 if unit else 1.0))
            elif name.endswith('bias'):
                parameter.copy_(0.2 * noise)
            elif any(part in name for part in ('embed_tokens', 'lm_head', 'wte', 'wpe', 'embed_in', 'embed_out', '_embeddings')):
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(noise * 1.4 / parameter.shape[-1 if parameter.dim() == 3 else 1] ** 0.5)
    return model.train()


def make_batch(vocabulary, generator):
    """Random ids; labels with a masked prefix, holes, a row without any target, and a target at the very end."""
    ids = torch.randint(3, vocabulary, (ROWS, LENGTH), generator=generator)
    labels = ids.clone()
    labels[0, :9] = IGNORED
    labels[1, torch.randperm(LENGTH, generator=generator)[:6]] = IGNORED
    labels[2, :] = IGNORED
    return ids, labels


def make_padded_batch(config, generator):
    """Rows of several lengths; labels of masked tokens at their positions, or a class where it is read."""
    ids, labels = make_batch(config.vocab_size, generator)
    masked = torch.rand(labels.shape, generator=generator) < 0.3
    classes = torch.randint(0, config.num_labels, (ROWS,), generator=generator)
    for row, length in enumerate(PADDED):
        ids[row, length:] = config.pad_token_id
        labels[row, :] = IGNORED
        if objective(config) == 'classes':
            labels[row, length - 1 if config.model_type == 'gpt_neox' else 0] = classes[row]
        elif row != 2:
            targets = torch.randint(3, config.vocab_size, (LENGTH,), generator=generator)
            masked[row, length:] = False
            labels[row, masked[row]] = targets[masked[row]]
    return ids, labels


def pad_inside(config, ids, labels, generator):
    """Replaces some tokens and their targets by the padding id, but not at the end of a row."""
    pad = config.pad_token_id % config.vocab_size
    chosen = torch.rand(ids.shape, generator=generator) < 0.2
    chosen[:, -1] = False
    for row, length in enumerate(PADDED):
        if objective(config) != 'tokens':
            chosen[row, length - 1:] = False
    if objective(config) == 'tokens':
        labels[chosen & (labels != IGNORED)] = pad
    ids[chosen] = pad


def attention_mask(config, ids):
    """Hides the padding at the end of rows from attention."""
    return (ids != config.pad_token_id).flip(1).long().cummax(dim=1).values.flip(1)


def loss_of(model, ids, labels):
    """Mean over the targets of all rows that are not ignored; position t predicts the label of t + 1, or its own."""
    kind = objective(model.config)
    if kind != 'tokens':
        logits = model(input_ids=ids, attention_mask=attention_mask(model.config, ids)).logits
        chosen = labels.max(dim=1).values if kind == 'classes' else labels.reshape(-1)
        return F.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), chosen, ignore_index=IGNORED), logits
    logits = model(input_ids=ids).logits
    loss = F.cross_entropy(logits[:, :-1].float().reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1),
                           ignore_index=IGNORED)
    return loss, logits


def gradients(model, ids, labels):
    model.zero_grad(set_to_none=True)
    loss, logits = loss_of(model, ids, labels)
    loss.backward()
    return loss.detach(), logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}


def graph_gradients(config, grads):
    """Renames to the names of headroom's graph."""
    if config.model_type == 'gpt_neox':  # the file uses the name of older versions
        return {name.replace('lm_head', 'embed_out'): g for name, g in grads.items()}
    if not has_experts(config):
        return grads
    block, gate, up, down = {'mixtral': ('block_sparse_moe', 'w1', 'w3', 'w2'),
                             'qwen3_moe': ('mlp', 'gate_proj', 'up_proj', 'down_proj')}[config.model_type]
    named = {}
    for name, g in grads.items():
        prefix = name.split('.mlp.')[0] + f'.{block}.'
        if name.endswith('experts.gate_up_proj'):  # one tensor for both, and for all experts
            named[f'{prefix}experts.*.{gate}.weight'], named[f'{prefix}experts.*.{up}.weight'] = g.chunk(2, dim=1)
        elif name.endswith('experts.down_proj'):
            named[f'{prefix}experts.*.{down}.weight'] = g
        elif name.endswith('mlp.gate.weight'):
            named[prefix + 'gate.weight'] = g
        else:
            named[name] = g
    return {name: g.contiguous() for name, g in named.items()}


def greedy(model, ids, count):
    """The tokens with which generate() continues a row."""
    model.eval()
    prompt = ids[:1, :7]
    with torch.no_grad():
        tokens = model.generate(prompt, max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0,
                                use_cache=True)
    model.train()
    return {'prompt': prompt[0].tolist(), 'tokens': tokens[0, prompt.shape[1]:].tolist()}


def difference(value, reference):
    return float((value.double() - reference.double()).norm() / reference.double().norm().clamp_min(1e-30))


def rounding_noise(model, ids, labels, loss, logits, grads):
    """How far PyTorch's own results move when only the order of sums changes: the basis of the tolerances."""
    if not getattr(model.config, 'attn_logit_softcapping', None):  # torch's fused attention does not support a cap
        model.set_attn_implementation('sdpa')
    order = torch.arange(ROWS - 1, -1, -1)
    other_loss, other_logits, other = gradients(model, ids[order], labels[order])
    model.set_attn_implementation('eager')
    return {'loss': abs(float(other_loss - loss)) / abs(float(loss)),
            'logits': difference(other_logits[order], logits),
            'worst_gradient': max(difference(other[name], grads[name]) for name in grads)}


def older_dialect(path):
    """rope_theta / rope_scaling / torch_dtype, as transformers 4 wrote them."""
    with open(path, encoding='utf-8') as text:
        config = json.load(text)
    rope = config.pop('rope_parameters')
    config['rope_theta'] = rope.pop('rope_theta')
    config['rope_scaling'] = rope
    config['torch_dtype'] = config.pop('dtype', 'float32')
    write_json(path, config)


def without_key(path, key):
    with open(path, encoding='utf-8') as text:
        config = json.load(text)
    del config[key]
    write_json(path, config)


def write_json(path, value):
    with open(path, 'w', encoding='utf-8') as out:
        out.write(json.dumps(value, indent=1) + '\n')


def rows_json(tensor):
    return [row.tolist() for row in tensor]


def write_case(folder, name, generator):
    config_class, arguments, special = CASES[name]
    model = make_model(config_class, arguments, generator)
    if objective(model.config) == 'tokens':
        ids, labels = make_batch(arguments['vocab_size'], generator)
    else:
        ids, labels = make_padded_batch(model.config, generator)
    if name.endswith('_padding'):
        pad_inside(model.config, ids, labels, generator)
    loss, logits, grads = gradients(model, ids, labels)
    noise = rounding_noise(model, ids, labels, loss, logits, grads)
    os.makedirs(os.path.join(folder, 'model'), exist_ok=True)
    model.save_pretrained(os.path.join(folder, 'model'))
    generation = os.path.join(folder, 'model', 'generation_config.json')
    if os.path.exists(generation):
        os.remove(generation)
    if name == 'llama_rope_linear':
        older_dialect(os.path.join(folder, 'model', 'config.json'))
    if name == 'gemma2_padding':
        without_key(os.path.join(folder, 'model', 'config.json'), 'pad_token_id')
    with open(os.path.join(folder, 'batch.json'), 'w', encoding='utf-8') as out:
        json.dump({'input_ids': rows_json(ids), 'labels': rows_json(labels)}, out)
        out.write('\n')
    save_file({'logits': logits[:2].contiguous()}, os.path.join(folder, 'expected_logits.safetensors'))
    grads = graph_gradients(model.config, grads)
    save_file(grads, os.path.join(folder, 'expected_grads.safetensors'))
    norm = torch.sqrt(sum((g.double() ** 2).sum() for g in grads.values()))
    for path in (os.path.join(folder, 'model', 'model.safetensors'), os.path.join(folder, 'expected_logits.safetensors'),
                 os.path.join(folder, 'expected_grads.safetensors')):
        os.chmod(path, 0o644)
    generated = {'greedy': greedy(model, ids, 20)} if has_experts(model.config) else {}
    write_json(os.path.join(folder, 'expected.json'), {
        'what': special, 'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__,
        'loss': float(loss), 'targets': int(((labels[:, 1:] if objective(model.config) == 'tokens' else labels) != IGNORED).sum()), 'gradient_norm': float(norm),
        'rounding_noise': noise, **generated})
    return model, ids, labels


class Product(torch.autograd.Function):
    """x w^T and its gradients with every operand as a sum of `parts` bf16 numbers. Of their products, those that are large enough
    to matter are summed in fp32. One part is --matmul-precision medium, two are high."""

    @staticmethod
    def forward(context, x, weight, parts):
        context.save_for_backward(x, weight)
        context.parts = parts
        return multiply(x.flatten(0, -2), weight.t(), parts).unflatten(0, x.shape[:-1])

    @staticmethod
    def backward(context, dy):
        (x, weight), parts, rows = context.saved_tensors, context.parts, dy.flatten(0, -2)
        return multiply(rows, weight, parts).view_as(x), multiply(rows.t(), x.flatten(0, -2), parts), None


def split(values, parts):
    out = []
    for _ in range(parts):
        out.append(values.bfloat16().float())
        values = values - out[-1]
    return out


def multiply(a, b, parts):
    a, b = split(a, parts), split(b, parts)
    return sum(a[i] @ b[j] for i in reversed(range(parts)) for j in reversed(range(parts - i)))


@contextlib.contextmanager
def products_of(parts):
    """All linear layers multiply like that; attention does not."""
    plain = F.linear
    F.linear = lambda x, weight, bias=None: Product.apply(x, weight, parts) + (0.0 if bias is None else bias)
    yield
    F.linear = plain


# How the model is computed, by the curve's key.
ARITHMETIC = {'fp32': contextlib.nullcontext, 'bf16_autocast': lambda: torch.autocast('cpu', dtype=torch.bfloat16),
              'high': lambda: products_of(2), 'medium': lambda: products_of(1)}
STEPS = dict(learning_rate=3e-3, weight_decay=0.1, adam_beta1=0.9, adam_beta2=0.95, adam_epsilon=1e-8, max_grad_norm=1.0)


def curve(model, batches, arithmetic=contextlib.nullcontext, options=STEPS):
    """AdamW steps, one for each of `batches` of ids and labels; matrices and embeddings decay, vectors do not. The norm is that
    of the trained weights' gradients."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [{'params': [p for p in trained if p.dim() > 1], 'weight_decay': options['weight_decay']},
         {'params': [p for p in trained if p.dim() <= 1], 'weight_decay': 0.0}], lr=options['learning_rate'],
        betas=(options['adam_beta1'], options['adam_beta2']), eps=options['adam_epsilon'])
    rows = []
    for step, (ids, labels) in enumerate(batches, 1):
        optimizer.zero_grad(set_to_none=True)
        with arithmetic():
            loss, _ = loss_of(model, ids, labels)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained, options['max_grad_norm'])
        optimizer.step()
        rows.append({'step': step, 'loss': float(loss.detach()), 'grad_norm': float(norm)})
    return rows


def frozen_patterns(config):
    """The value of --freeze: the embeddings and the first layer."""
    first = {'bert': ['embeddings', 'layer.0'], 'roberta': ['embeddings', 'layer.0'], 'gpt_neox': ['embed_in', 'layers.0']}
    return first.get(config.model_type, ['embed_tokens', 'layers.0'])


def gradient_error(model, ids, labels, arithmetic):
    """The distance of all gradients together from fp32's, relative to their norm."""
    exact = gradients(model, ids, labels)[2]
    with arithmetic():
        found = gradients(model, ids, labels)[2]
    squares = [sum(float((g.double() ** 2).sum()) for g in of) for of in
               ((found[name] - exact[name] for name in exact), exact.values())]
    return (squares[0] / squares[1]) ** 0.5


def write_curves(folder, model, ids, labels, steps):
    start = copy.deepcopy(model.state_dict())
    batches = [(ids, labels)] * steps
    result = dict(STEPS)
    for key in ('fp32', 'bf16_autocast') if has_experts(model.config) else ARITHMETIC:
        model.load_state_dict(start)
        result[key] = curve(model, batches, ARITHMETIC[key])
    model.load_state_dict(start)
    if not has_experts(model.config):
        result['gradient_error'] = {key: gradient_error(model, ids, labels, ARITHMETIC[key]) for key in ('high', 'medium')}
    result['freeze'] = frozen_patterns(model.config)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(f'.{pattern}.' in f'.{name}' for pattern in result['freeze']))
    result['frozen'] = curve(model, batches)
    write_json(os.path.join(folder, 'curves.json'), result)


def write_balanced(folder, model, ids, labels):
    """The same model and tokens with rows of several lengths and the load-balancing loss."""
    keep = torch.zeros_like(ids)
    for row, length in enumerate(PADDED):
        keep[row, :length] = 1
    ids, labels = ids * keep, torch.where(keep.bool(), labels, torch.full_like(labels, IGNORED))
    coefficient, rate, losses = 0.5, 3e-3, []
    model.router_aux_loss_coef = coefficient
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    for _ in range(5):
        optimizer.zero_grad(set_to_none=True)
        out = model(input_ids=ids, attention_mask=keep, labels=labels, output_router_logits=True)
        out.loss.backward()
        norm = torch.sqrt(sum((p.grad.double() ** 2).sum() for p in model.parameters()))
        losses.append({'loss': float(out.loss.detach()), 'balance': float(out.aux_loss.detach()), 'gradient_norm': float(norm)})
        optimizer.step()
    write_json(os.path.join(folder, 'balanced.json'), {'router_aux_loss_coef': coefficient, 'learning_rate': rate,
        'lengths': list(PADDED), 'steps': losses})


def write_pairs(folder, model, ids, labels):
    """The same rows as two texts each: from a third of the row on, tokens have type 1."""
    types = torch.zeros_like(ids)
    for row, length in enumerate(PADDED):
        types[row, length // 3:length] = 1
    model.zero_grad(set_to_none=True)
    out = model(input_ids=ids, attention_mask=(ids != model.config.pad_token_id).long(), token_type_ids=types)
    loss = F.cross_entropy(out.logits, labels.max(dim=1).values)
    loss.backward()
    norm = torch.sqrt(sum((p.grad.double() ** 2).sum() for p in model.parameters()))
    by_types = model.bert.embeddings.token_type_embeddings.weight.grad
    write_json(os.path.join(folder, 'pairs.json'), {'types': rows_json(types), 'loss': float(loss.detach()),
        'gradient_norm': float(norm), 'type_gradient_norms': by_types.norm(dim=1).tolist()})


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for seed, name in enumerate(CASES):
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        folder = os.path.join(root, name)
        torch.manual_seed(seed)
        model, ids, labels = write_case(folder, name, torch.Generator().manual_seed(1000 + seed))
        if name == 'llama_gqa_tied':
            write_curves(folder, model, ids, labels, 10)
        elif name not in FIRST:
            write_curves(folder, model, ids, labels, 5)
        if name == 'bert_classes':
            start = type(model).from_pretrained(os.path.join(folder, 'model'), attn_implementation='eager').train()
            write_pairs(folder, start, ids, labels)
        if has_experts(model.config):
            start = type(model).from_pretrained(os.path.join(folder, 'model'), attn_implementation='eager').train()
            start.config._experts_implementation = 'eager'
            write_balanced(folder, start, ids, labels)
        print(name, end=' ', flush=True)
    print()


if __name__ == '__main__':
    main()
