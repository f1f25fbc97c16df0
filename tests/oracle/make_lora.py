#!/usr/bin/env python3
"""Writes the golden files of LoRA: tests/oracle/CASE/lora/ with an adapter of PEFT and what PEFT computed with it.

Needs torch, transformers, peft and safetensors (not needed to build or test headroom: the files are committed).
Usage: make_lora.py [--logits | --errors | --plus | --dora | --dora-curve] [CASE...]
  --logits, --errors, --plus: only logits.safetensors, bf16_gradient_error or plus.json, for the existing adapter.
  --dora: only CASE/dora/, an adapter with random A, B and magnitudes as saved by PEFT, its loss, and what --dora-curve writes:
    curve.json, losses and gradient norms of ten AdamW steps from it in fp32, and final.safetensors, the adapter after them.

CASE/lora/adapter_config.json, adapter_model.safetensors: an adapter with random A and B, as saved by PEFT.
CASE/lora/expected.json: losses and gradient norms (before clipping at 1) of five AdamW steps from that adapter on the case's
batch, all rows at once, in fp32 and under torch's bf16 autocast; the arguments and versions.
final.safetensors: the adapter after the fp32 steps. plus.json: five fp32 steps of LoRA+ from the adapter. logits.safetensors:
fp32 logits of the batch's first row with the saved adapter.
bf16_gradient_error: the smallest and the largest relative L2 distance of the first step's gradient under autocast from fp32's,
over all that is trained, for the given adapter and base and for 24 neighbours. The numbers of a neighbour differ by up to
2^-12 of themselves, a sixteenth of bf16's resolution, so that other numbers are rounded differently. If tokens choose experts,
one of them goes elsewhere for some of the neighbours, and the error doubles. `loss`: the largest relative error of the loss.
"""
import json
import os
import shutil
import sys

import peft
import peft.optimizers
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
HERE = os.path.dirname(os.path.abspath(__file__))

CASES = {
    'llama_gqa_tied': dict(r=4, lora_alpha=8, target_modules='all-linear'),
    'gpt2': dict(r=3, lora_alpha=6, target_modules=['c_attn', 'c_fc'], fan_in_fan_out=True, use_rslora=True),
    # Attention, the router and the experts. PEFT gives an expert's gate and up one pair of matrices with twice the rank.
    'mixtral': dict(r=3, lora_alpha=6, target_modules='all-linear', use_rslora=True),
    'qwen3_moe': dict(r=4, lora_alpha=8, target_modules=['q_proj', 'v_proj'],
                      target_parameters=['mlp.experts.gate_up_proj', 'mlp.experts.down_proj']),
    # A trained embedding that is also the head: PEFT's file has it under both names.
    'gemma2': dict(r=4, lora_alpha=8, target_modules=['q_proj', 'gate_proj'], modules_to_save=['embed_tokens'],
                   ensure_weight_tying=True),
    # The same with the padding id inside rows: the trained copy keeps the embedding's padding_idx.
    'gemma2_padding': dict(r=2, lora_alpha=4, target_modules=['q_proj'], modules_to_save=['embed_tokens'],
                           ensure_weight_tying=True),
    'qwen2_bias': dict(r=5, lora_alpha=5, target_modules=['q_proj', 'v_proj', 'down_proj'], modules_to_save=['model.norm']),
}
# Of B. Small with routers, where rounding to bf16 would otherwise send many tokens to other experts.
SCALES = {'mixtral': 0.02}
STEPS = dict(learning_rate=1e-2, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0, max_grad_norm=1.0)


def load(case, options):
    model = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(HERE, case, 'model'), attn_implementation='eager',
                                                              dtype=torch.float32)
    model = peft.get_peft_model(model, peft.LoraConfig(lora_dropout=0.0, bias='none', task_type='CAUSAL_LM', **options))
    torch.manual_seed(hash_of(case))
    for name, parameter in sorted(model.named_parameters()):
        if 'lora_' in name:
            parameter.data = torch.randn_like(parameter) * (0.3 if 'lora_A' in name else SCALES.get(case, 0.1))
    return model


def hash_of(text):
    return sum(ord(c) * 31 ** i for i, c in enumerate(text)) % 2 ** 31


def loss_of(model, batch, autocast):
    ids, labels = torch.tensor(batch['input_ids']), torch.tensor(batch['labels'])
    with torch.autocast('cpu', dtype=torch.bfloat16, enabled=autocast):
        logits = model(input_ids=ids).logits
    return F.cross_entropy(logits[:, :-1].float().flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


# For LoRA+; the other settings are STEPS.
PLUS = dict(learning_rate=1e-3, loraplus_lr_ratio=8.0)


def curve(case, options, batch, autocast):
    model = load(case, options)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=STEPS['learning_rate'],
                                  betas=(STEPS['beta1'], STEPS['beta2']), eps=STEPS['epsilon'], weight_decay=STEPS['weight_decay'])
    return model, steps(model, optimizer, batch, autocast)


def write_plus(case, batch):
    model = adapted(case, True)
    optimizer = peft.optimizers.create_loraplus_optimizer(
        model, torch.optim.AdamW, lr=PLUS['learning_rate'], loraplus_lr_ratio=PLUS['loraplus_lr_ratio'],
        betas=(STEPS['beta1'], STEPS['beta2']), eps=STEPS['epsilon'])
    rows = steps(model, optimizer, batch, False)
    write_expected(os.path.join(HERE, case, 'lora', 'plus.json'), dict(PLUS, fp32=rows))


def steps(model, optimizer, batch, autocast, count=5):
    trained = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for step in range(1, count + 1):
        optimizer.zero_grad()
        loss = loss_of(model, batch, autocast)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained, STEPS['max_grad_norm'])
        rows.append(dict(step=step, loss=loss.item(), grad_norm=norm.item()))
        optimizer.step()
    return rows


def write_dora(case, batch):
    folder = os.path.join(HERE, case, 'dora')
    shutil.rmtree(folder, ignore_errors=True)
    model = load(case, dict(CASES[case], use_dora=True, use_rslora=True))
    for name, parameter in sorted(model.named_parameters()):
        if 'lora_magnitude_vector' in name:  # load() initialised it around 0, but lengths are positive
            parameter.data = 1 + parameter.data.abs()
    model.save_pretrained(folder)
    for extra in os.listdir(folder):
        if not extra.startswith('adapter_'):
            os.remove(os.path.join(folder, extra))
    clean_config(os.path.join(folder, 'adapter_config.json'), case)
    with torch.no_grad():
        write_expected(os.path.join(folder, 'expected.json'), dict(loss=loss_of(model.eval(), batch, False).item()))
    write_dora_curve(case, batch)


def write_dora_curve(case, batch):
    folder = os.path.join(HERE, case, 'dora')
    model = adapted(case, True, 'dora')
    settings = dict(STEPS, learning_rate=1e-3)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=settings['learning_rate'],
                                  betas=(STEPS['beta1'], STEPS['beta2']), eps=STEPS['epsilon'], weight_decay=STEPS['weight_decay'])
    rows = steps(model, optimizer, batch, False, 10)
    final = peft.get_peft_model_state_dict(model)
    save_file({k: v.contiguous().clone() for k, v in sorted(final.items())}, os.path.join(folder, 'final.safetensors'))
    write_expected(os.path.join(folder, 'curve.json'), dict(
        settings, fp32=rows, versions=dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__)))
    print(case, [round(r['loss'], 5) for r in rows])


def adapted(case, is_trainable, folder='lora'):
    base = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(HERE, case, 'model'), attn_implementation='eager',
                                                             dtype=torch.float32)
    return peft.PeftModel.from_pretrained(base, os.path.join(HERE, case, folder), is_trainable=is_trainable)


def gradient(model, batch, autocast):
    model.zero_grad()
    loss = loss_of(model, batch, autocast)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad]).double()


def gradient_errors(case, batch, neighbours=24):
    model = adapted(case, True)
    given = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    errors, losses = [], []
    for draw in range(1 + neighbours):
        random = torch.Generator().manual_seed(draw)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                moved = 1 + 2 ** -12 * (2 * torch.rand(parameter.shape, generator=random) - 1)
                parameter.copy_(given[name] * (moved if draw > 0 else 1))
        loss, exact = gradient(model, batch, False)
        narrow_loss, narrow = gradient(model, batch, True)
        errors.append(((exact - narrow).norm() / exact.norm()).item())
        losses.append(abs(narrow_loss / loss - 1))
    return dict(least=min(errors), most=max(errors), loss=max(losses), neighbours=neighbours)


def write_errors(case, batch):
    path = os.path.join(HERE, case, 'lora', 'expected.json')
    with open(path, encoding='utf-8') as text:
        expected = json.load(text)
    expected['bf16_gradient_error'] = gradient_errors(case, batch)
    write_expected(path, expected)


def write_expected(path, expected):
    with open(path, 'w', encoding='utf-8') as out:
        json.dump(expected, out, indent=1)
        out.write('\n')


def write_logits(case):
    folder = os.path.join(HERE, case, 'lora')
    model = adapted(case, False)
    model.eval()
    with open(os.path.join(HERE, case, 'batch.json'), encoding='utf-8') as text:
        ids = torch.tensor(json.load(text)['input_ids'][:1])
    with torch.no_grad():
        save_file({'logits': model(input_ids=ids).logits[0].contiguous()}, os.path.join(folder, 'logits.safetensors'))


def main():
    for case in [name for name in sys.argv[1:] if not name.startswith('--')] or CASES:
        folder = os.path.join(HERE, case, 'lora')
        if '--logits' in sys.argv:
            write_logits(case)
            continue
        with open(os.path.join(HERE, case, 'batch.json'), encoding='utf-8') as text:
            batch = json.load(text)
        if '--dora' in sys.argv:
            write_dora(case, batch)
            continue
        if '--dora-curve' in sys.argv:
            write_dora_curve(case, batch)
            continue
        if '--plus' in sys.argv:
            write_plus(case, batch)
            continue
        if '--errors' in sys.argv:
            write_errors(case, batch)
            continue
        shutil.rmtree(folder, ignore_errors=True)
        load(case, CASES[case]).save_pretrained(folder)
        for extra in os.listdir(folder):
            if not extra.startswith('adapter_'):
                os.remove(os.path.join(folder, extra))
        clean_config(os.path.join(folder, 'adapter_config.json'), case)
        model, fp32 = curve(case, CASES[case], batch, False)
        final = peft.get_peft_model_state_dict(model)
        save_file({k: v.contiguous().clone() for k, v in sorted(final.items())}, os.path.join(folder, 'final.safetensors'))
        expected = dict(STEPS, fp32=fp32, bf16_autocast=curve(case, CASES[case], batch, True)[1],
                        versions=dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__))
        write_expected(os.path.join(folder, 'expected.json'), expected)
        write_errors(case, batch)
        write_logits(case)
        print(case, [round(r['loss'], 5) for r in fp32])


def clean_config(path, case):
    with open(path, encoding='utf-8') as text:
        config = json.load(text)
    config['base_model_name_or_path'] = f'tests/oracle/{case}/model'
    for key in 'target_modules', 'target_parameters':
        config[key] = config[key] and sorted(config[key])
    with open(path, 'w', encoding='utf-8') as out:
        json.dump(config, out, indent=1, sort_keys=True)
        out.write('\n')


if __name__ == '__main__':
    main()
