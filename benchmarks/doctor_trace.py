#!/usr/bin/env python3
"""Peak of live tensors in real training steps of models in their published widths, without their memory: benchmarks/doctor_data/traced.tsv.

    doctor_trace.py OUT.tsv            # runs the cases that OUT.tsv lacks

Needs torch, transformers and peft; litgpt and bitsandbytes for LitGPT's cases (no GPU). The models of transformers, PEFT's adapters and LitGPT's own modules run forward,
backward and SGD over fake tensors: torch works out every shape, type and lifetime, and a dispatch mode adds up the storages that live, in 512-byte blocks
as torch's CUDA allocator gives them. So this checks formulas for what autograd keeps, not the CUDA context, the allocator's slack or kernels' workspaces.
Where the CPU's kernels keep something else than CUDA's, CUDA's rule stands in: attention keeps q, k, v, output and log-sum-exp, dropout a byte of
mask, autocast runs layer_norm and pow in float32. A 4-bit layer has the tensors of bitsandbytes' Linear4bit and the temporaries of its MatMul4Bit.
"""
import argparse, contextlib, json, os, sys, weakref

# The published widths with eight layers: layers are alike, and a trace takes a moment.
LLAMA = dict(model_type='llama', hidden_size=4096, intermediate_size=11008, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=32, vocab_size=32000, max_position_embeddings=4096, tie_word_embeddings=False)
MODELS = {
    'llama-2-7b': LLAMA, 'mistral-7b': dict(LLAMA, intermediate_size=14336, num_key_value_heads=8),
    'falcon-7b': dict(model_type='falcon', hidden_size=4544, num_hidden_layers=8, num_attention_heads=71, vocab_size=65024, max_position_embeddings=2048, multi_query=True, parallel_attn=True, bias=False, alibi=False, new_decoder_architecture=False, tie_word_embeddings=True),
    'gpt-j-6b': dict(model_type='gptj', n_embd=4096, n_layer=8, n_head=16, n_positions=2048, rotary_dim=64, vocab_size=50400, tie_word_embeddings=False),
    'pythia-2.8b': dict(model_type='gpt_neox', hidden_size=2560, intermediate_size=10240, num_hidden_layers=8, num_attention_heads=32, vocab_size=50304, max_position_embeddings=2048, use_parallel_residual=True, tie_word_embeddings=False),
    'phi-2': dict(model_type='phi', hidden_size=2560, intermediate_size=10240, num_hidden_layers=8, num_attention_heads=32, vocab_size=51200, max_position_embeddings=2048, partial_rotary_factor=0.4, tie_word_embeddings=False),
}
LITGPT = {'llama-2-7b': 'Llama-2-7b-hf'}
TARGETS = {'falcon-7b': ['query_key_value'], 'pythia-2.8b': ['query_key_value']}

def grid():
    rows = {}
    def add(source, model, batch, sequence, **options):
        name = '-'.join([model, f'b{batch}', f's{sequence}'] + [k if v is True else f'{k}_{v}' for k, v in options.items()])
        rows[name if source == 'trace-hf' else 'litgpt-' + name] = (source, model, batch, sequence, options)
    for model in MODELS: add('trace-hf', model, 2, 512, quantization='nf4-dq', autocast='bfloat16', lora=16)
    # In full training of untied tables only: a tied table's two gradients are added in place, which fake tensors are not.
    for model in ('gpt-j-6b', 'pythia-2.8b', 'phi-2'): add('trace-hf', model, 2, 512, weights='bfloat16')
    for model, rank, targets in (('falcon-7b', 32, 'q_proj,v_proj'), ('phi-2', 8, 'q_proj,k_proj,v_proj,output_proj,mlp'), ('llama-2-7b', 32, 'q_proj,v_proj')):
        add('trace-litgpt', model, 2, 512, lora=rank, targets=targets, dropout=0.05); add('trace-litgpt', model, 2, 512, lora=rank, targets=targets, dropout=0.05, quantization='nf4')
    for model in ('llama-2-7b', 'falcon-7b', 'phi-2'): add('trace-hf', model, 4, 1024, quantization='nf4-dq', autocast='bfloat16', lora=16, checkpointing=True)
    for model in ('gpt-j-6b', 'pythia-2.8b', 'phi-2', 'llama-2-7b'): add('trace-hf', model, 2, 512, weights='float32', autocast='bfloat16')
    add('trace-hf', 'llama-2-7b', 1, 1024, quantization='nf4', autocast='bfloat16', lora=64, dropout=0.05); add('trace-hf', 'llama-2-7b', 1, 1024, quantization='nf4', lora=64)
    for model in ('falcon-7b', 'phi-2', 'llama-2-7b'): add('trace-hf', model, 2, 512, weights='bfloat16', lora=16)
    return rows

def live_counter(torch):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    class Live(TorchDispatchMode):
        def __init__(self): super().__init__(); self.sizes, self.now, self.peak = {}, 0, 0
        def drop(self, key): return lambda _: self.gone(key)
        def gone(self, key):
            if key in self.sizes: self.now -= self.sizes.pop(key)[0]
        def see(self, t):
            s = t.untyped_storage(); key, size = s._cdata, -(-s.nbytes() // 512) * 512
            if key in self.sizes: self.now += size - self.sizes[key][0]; self.sizes[key] = (size, self.sizes[key][1])
            else: self.sizes[key] = (size, weakref.ref(s, self.drop(key))); self.now += size
            self.peak = max(self.peak, self.now)
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for t in tree_leaves(out):
                if isinstance(t, torch.Tensor): self.see(t)
            return out
    torch.utils.swap_tensors = lambda a, b: setattr(a, 'data', b.data)  # fake tensors cannot be swapped, only assigned
    return Live

def cuda_rules(torch):
    """CUDA's kernels and autocast in place of the CPU's. Returns the list whose only entry is the type that autocast runs in, or None."""
    F, half = torch.nn.functional, [None]
    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            b, h, s, _ = q.shape; o = torch.empty((b, s, h, v.shape[-1]), dtype=q.dtype).transpose(1, 2)
            ctx.save_for_backward(q, k, v, o, torch.empty((b, h, s), dtype=torch.float32)); return o
        @staticmethod
        def backward(ctx, _): return tuple(torch.empty_like(t) for t in ctx.saved_tensors[:3])
    class Dropout(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): ctx.save_for_backward(torch.empty(x.shape, dtype=torch.bool)); return torch.empty_like(x)
        @staticmethod
        def backward(ctx, g): return torch.empty_like(g)
    def attention(q, k, v, *_, **__):
        if half[0]: q, k, v = (t.to(half[0]) for t in (q, k, v))
        return Attention.apply(q, k, v)
    wide = lambda x: x.float() if half[0] and isinstance(x, torch.Tensor) else x
    layer_norm, power, method = F.layer_norm, torch.pow, torch.Tensor.pow
    F.scaled_dot_product_attention = attention
    F.dropout = lambda x, p=.5, training=True, inplace=False: Dropout.apply(x) if training and p > 0 else x
    F.layer_norm = lambda x, shape, weight=None, bias=None, eps=1e-5: layer_norm(wide(x), shape, wide(weight), wide(bias), eps)
    torch.pow = lambda x, e: power(wide(x), e); torch.Tensor.pow = lambda x, e: method(wide(x), e)
    return half

def four_bit(torch, model, kind, base):
    """Every torch.nn.Linear but a head of transformers as a layer of 4-bit weights of the class `base`."""
    double = kind.endswith('dq')
    def dequantized(layer, dtype):
        if double: scale = torch.empty(layer.absmax.numel()); scale += 1
        return torch.empty(layer.shape, dtype=dtype)
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, layer, bias): ctx.layer = layer; return torch.nn.functional.linear(x, dequantized(layer, x.dtype), bias)
        @staticmethod
        def backward(ctx, g): return torch.matmul(g, dequantized(ctx.layer, g.dtype)), None, None
    class FourBit(base):
        def __init__(self, child):
            torch.nn.Module.__init__(self); n = child.weight.numel(); self.shape = tuple(child.weight.shape); self.in_features, self.out_features = child.in_features, child.out_features
            self.weight = torch.nn.Parameter(torch.empty((n // 2, 1), dtype=torch.uint8), requires_grad=False); self.weight.compress_statistics, self.weight.quant_type = double, 'nf4'
            self.compute_dtype = torch.bfloat16; self.register_buffer('absmax', torch.empty(n // 64, dtype=torch.uint8 if double else torch.float32))
            if double: self.register_buffer('nested', torch.empty(n // 16384, dtype=torch.float32))
            self.bias = None if child.bias is None else torch.nn.Parameter(child.bias.data, requires_grad=False)
        def forward(self, x):
            given, x = x.dtype, x.to(torch.bfloat16)
            return Product.apply(x, self, None if self.bias is None else self.bias.to(x.dtype)).to(given)
    def replace(module):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and name not in ('lm_head', 'embed_out'): setattr(module, name, FourBit(child))
            elif name not in ('lm_head', 'embed_out') or base is torch.nn.Module: replace(child)
    replace(model)

def trace_hf(torch, live, half, model_name, batch, sequence, o):
    import peft
    from transformers import AutoConfig, AutoModelForCausalLM
    fields = dict(MODELS[model_name]); config = AutoConfig.for_model(fields.pop('model_type'), **fields); config.use_cache = False
    for key in ('hidden_dropout', 'attention_dropout', 'attn_pdrop', 'resid_pdrop', 'embd_pdrop'):
        if hasattr(config, key): setattr(config, key, 0.0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation='eager' if model_name == 'gpt-j-6b' else 'sdpa', dtype=getattr(torch, o.get('weights', 'bfloat16')))
    again = dict(use_reentrant=False)
    if 'quantization' in o:
        import bitsandbytes
        four_bit(torch, model, o['quantization'], bitsandbytes.nn.Linear4bit); model.is_loaded_in_4bit = True
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=o.get('checkpointing', False), gradient_checkpointing_kwargs=again)
    elif o.get('checkpointing'): model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=again)
    if 'lora' in o:
        targets = TARGETS.get(model_name, ['q_proj', 'v_proj'])
        model = peft.get_peft_model(model, peft.LoraConfig(r=o['lora'], lora_alpha=16, lora_dropout=o.get('dropout', 0.0), target_modules=targets)); model.enable_input_require_grads()
    model.train(); optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-4, foreach=False)
    cast = getattr(torch, o['autocast']) if 'autocast' in o else None; tokens = torch.zeros((batch, sequence), dtype=torch.long)
    live.peak = 0
    half[0] = cast
    with torch.autocast('cpu', dtype=cast) if cast else contextlib.nullcontext(): out = model(input_ids=tokens, labels=tokens)
    out.loss.backward(); half[0] = None; optimizer.step()

def trace_litgpt(torch, live, half, model_name, batch, sequence, o):
    """The loop of litgpt/finetune/lora.py with precision bf16-true, two micro-batches a step."""
    from litgpt.lora import GPT, Config, mark_only_lora_as_trainable
    from litgpt.utils import chunked_cross_entropy
    torch.set_default_dtype(torch.bfloat16); on = o['targets'].split(',')
    config = Config.from_name(LITGPT.get(model_name, model_name), n_layer=8, lora_r=o['lora'], lora_alpha=16, lora_dropout=o['dropout'], lora_query='q_proj' in on, lora_key='k_proj' in on, lora_value='v_proj' in on,
                              lora_projection='output_proj' in on, lora_mlp='mlp' in on, lora_head=False)
    model = GPT(config); mark_only_lora_as_trainable(model); trained = [p for p in model.parameters() if p.requires_grad]
    if 'quantization' in o:
        import bitsandbytes
        four_bit(torch, model, o['quantization'], torch.nn.Module)
        old_embedding = model.transformer.wte; new = bitsandbytes.nn.StableEmbedding(old_embedding.num_embeddings, old_embedding.embedding_dim)
        new.weight.data = new.weight.data.to(torch.bfloat16); model.transformer.wte = new
    model.max_seq_length = sequence; model.train(); optimizer = torch.optim.SGD(trained, lr=1e-4, foreach=False); live.peak = 0
    tokens = torch.zeros((batch, sequence), dtype=torch.long)
    for step in range(2):
        logits = model(tokens, lm_head_chunk_size=128); logits[-1] = logits[-1][..., :-1, :]
        (chunked_cross_entropy(logits, tokens[..., 1:]) / 2).backward()
    optimizer.step()

def one(name, half):
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    source, model, batch, sequence, options = grid()[name]
    with FakeTensorMode(allow_non_fake_inputs=True), live_counter(torch)() as live:
        (trace_hf if source == 'trace-hf' else trace_litgpt)(torch, live, half, model, batch, sequence, options)
    return live.peak

def fields_of(name):
    source, model, batch, sequence, o = grid()[name]; litgpt = source == 'trace-litgpt'
    words = [f'system={"litgpt" if litgpt else "pytorch"}', 'gpu=A100-80GB', f'batch={batch}', f'sequence={sequence}', 'weights=' + o.get('weights', 'bfloat16'), 'autocast=' + o.get('autocast', 'none'),
             'optimizer=sgd', 'checkpointing=%d' % o.get('checkpointing', 0), 'packing=1']
    if litgpt: words.append('accumulation=2')
    for key, field in (('quantization', 'quantization'), ('lora', 'lora_rank'), ('dropout', 'lora_dropout')):
        if key in o: words.append(f'{field}={o[key]}')
    if 'lora' in o: words.append('lora_targets=' + o.get('targets', ','.join(TARGETS.get(model, ['q_proj', 'v_proj']))))
    return ' '.join(words)

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('out'); a = p.parse_args()
    import torch
    folder = os.path.join(os.path.dirname(os.path.abspath(a.out)), 'models')
    for model, fields in MODELS.items():
        os.makedirs(os.path.join(folder, model + '-8-layers'), exist_ok=True)
        json.dump(fields, open(os.path.join(folder, model + '-8-layers', 'config.json'), 'w'), indent=1)
    done = {line.split('\t')[1] for line in open(a.out) if not line.startswith('#')} if os.path.exists(a.out) else set()
    half = cuda_rules(torch)
    for name in grid():
        if name in done: continue
        try: found = one(name, half)
        except Exception as error: print(name, 'failed:', repr(error)[:300], file=sys.stderr); continue
        finally: torch.set_default_dtype(torch.float32)
        with open(a.out, 'a') as f:
            if not done: f.write(f'# peak of live tensors, traced with torch {torch.__version__} over fake tensors: benchmarks/doctor_trace.py\n')
            f.write('\t'.join([grid()[name][0], name, 'allocated', str(found), f'models/{grid()[name][1]}-8-layers', fields_of(name)]) + '\n')
        done.add(name); print(name, found >> 20, 'MiB', file=sys.stderr, flush=True)

if __name__ == '__main__': main()
