#!/usr/bin/env python3
"""Writes tests/oracle/CASE/fp16.json: AdamW steps under torch.autocast(float16) with torch.amp.GradScaler, on the CPU.

Needs torch, transformers and safetensors (not needed to build or test headroom: the files are committed).
Usage: make_fp16.py [CASE...]

Every step uses the case's batch. The first scale is low enough that no gradient overflows, and grows after every third step.
`grad_norm` is that of the unscaled gradients before clipping. `gradient_error` is the distance of all gradients together from
fp32's, relative to their norm.
"""
import json
import os
import sys

import torch
import transformers

from make_oracle import CASES as KNOWN
from make_oracle import STEPS, head_class, loss_of, write_json

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = ('llama_gqa_tied', 'gpt2', 'qwen2_bias')
INITIAL_SCALE_POWER, WINDOW, COUNT = 8, 3, 8


def load(name):
    config_class, arguments, _ = KNOWN[name]
    config = config_class(**arguments)
    model = head_class(config).from_pretrained(os.path.join(HERE, name, 'model'), attn_implementation='eager',
                                               dtype=torch.float32)
    model.eval()  # no dropout
    with open(os.path.join(HERE, name, 'batch.json'), encoding='utf-8') as text:
        batch = json.load(text)
    return model, torch.tensor(batch['input_ids']), torch.tensor(batch['labels'])


def steps(model, ids, labels):
    scaler = torch.amp.GradScaler('cpu', init_scale=2.0 ** INITIAL_SCALE_POWER, growth_interval=WINDOW)
    trained = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{'params': [p for p in trained if p.dim() > 1], 'weight_decay': STEPS['weight_decay']},
         {'params': [p for p in trained if p.dim() <= 1], 'weight_decay': 0.0}], lr=STEPS['learning_rate'],
        betas=(STEPS['adam_beta1'], STEPS['adam_beta2']), eps=STEPS['adam_epsilon'])
    rows = []
    for step in range(1, COUNT + 1):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cpu', dtype=torch.float16):
            loss, _ = loss_of(model, ids, labels)
        scale = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(trained, STEPS['max_grad_norm'])
        scaler.step(optimizer)
        scaler.update()
        rows.append({'step': step, 'loss': float(loss.detach()), 'grad_norm': float(norm), 'scale': scale})
    return rows


def gradient_error(model, ids, labels):
    def gradients(scale, narrow):
        model.zero_grad(set_to_none=True)
        with torch.autocast('cpu', dtype=torch.float16, enabled=narrow):
            loss, _ = loss_of(model, ids, labels)
        (loss * scale).backward()
        return [p.grad.double() / scale for p in model.parameters()]

    exact, found = gradients(1.0, False), gradients(2.0 ** INITIAL_SCALE_POWER, True)
    return (sum(float(((f - e) ** 2).sum()) for f, e in zip(found, exact)) / sum(float((e ** 2).sum()) for e in exact)) ** 0.5


def main():
    for name in sys.argv[1:] or CASES:
        model, ids, labels = load(name)
        error = gradient_error(model, ids, labels)
        rows = steps(model, ids, labels)
        write_json(os.path.join(HERE, name, 'fp16.json'),
                   dict(STEPS, initial_scale_power=INITIAL_SCALE_POWER, window=WINDOW, gradient_error=error, steps=rows,
                        versions=dict(torch=torch.__version__, transformers=transformers.__version__)))
        print(name, f'{error:.2e}', [(round(row['loss'], 5), round(row['grad_norm'], 4), row['scale']) for row in rows])


if __name__ == '__main__':
    main()
