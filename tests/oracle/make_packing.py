#!/usr/bin/env python3
"""Writes tests/oracle/packing.json: PyTorch's results for packed sequences of the golden models.

Rows of different lengths share a sequence: positions restart with each row, and attention is within each row (transformers
builds the block-diagonal mask from the positions; windows stay windows). The script first checks that this equals the rows one
by one.

Needs torch, transformers and safetensors, and the models of make_oracle.py. Usage: make_packing.py
Per case: loss (mean over the targets), and for each weight the L2 norm of its gradient and its product with cos(0), cos(1),
cos(2), ... over the elements in order.
"""
import json
import os

import torch
import torch.nn.functional as F
import transformers

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

FOLDER = os.path.dirname(os.path.abspath(__file__))
CASES = ('llama_gqa_tied', 'gpt2', 'mistral_window', 'gemma3', 'qwen3', 'gpt_neox')
LENGTH = 48
# (row of batch.json, first token, tokens) of the rows that share a sequence.
SEQUENCES = [[(0, 0, 27), (1, 0, 20)], [(0, 0, 5), (1, 5, 13), (2, 0, 1), (3, 0, 22), (3, 3, 7)]]


def rows_of(batch):
    return [[torch.tensor(batch[row][first:first + tokens]) for row, first, tokens in sequence] for sequence in SEQUENCES]


def packed_loss(model, rows):
    """The sum of losses over packed sequences and the number of targets; the padding at the end is a separate row."""
    ids = torch.stack([F.pad(torch.cat(sequence), (0, LENGTH - sum(map(len, sequence)))) for sequence in rows])
    positions = torch.stack([torch.cat([torch.arange(len(row)) for row in sequence]
                                       + [torch.arange(LENGTH - sum(map(len, sequence)))]) for sequence in rows])
    logits = model(input_ids=ids, position_ids=positions).logits
    total, targets = 0.0, 0
    for i, sequence in enumerate(rows):
        at = 0
        for row in sequence:
            total = total + F.cross_entropy(logits[i, at:at + len(row) - 1].float(), row[1:], reduction='sum')
            targets += len(row) - 1
            at += len(row)
    return total, targets


def single_loss(model, rows):
    total, targets = 0.0, 0
    for row in (row for sequence in rows for row in sequence):
        if len(row) < 2:
            continue
        logits = model(input_ids=row[None]).logits[0]
        total = total + F.cross_entropy(logits[:-1].float(), row[1:], reduction='sum')
        targets += len(row) - 1
    return total, targets


def outcome(model, loss):
    model.zero_grad(set_to_none=True)
    total, targets = loss
    (total / targets).backward()
    return float(total.detach()) / targets, targets, {name: p.grad.clone() for name, p in model.named_parameters()}


def product(gradient):
    flat = gradient.double().reshape(-1)
    return float((flat * torch.cos(torch.arange(len(flat), dtype=torch.float64))).sum())


def main():
    cases = {}
    for name in CASES:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            os.path.join(FOLDER, name, 'model'), attn_implementation='eager', dtype=torch.float32).train()
        model.config.use_cache = False
        with open(os.path.join(FOLDER, name, 'batch.json'), encoding='utf-8') as text:
            rows = rows_of(json.load(text)['input_ids'])
        loss, targets, grads = outcome(model, packed_loss(model, rows))
        alone, _, grads_alone = outcome(model, single_loss(model, rows))
        worst = max(float((grads[n] - grads_alone[n]).norm() / grads_alone[n].norm().clamp_min(1e-6)) for n in grads)
        print(f'{name}: loss {loss:.7f}, one by one {alone:.7f}, worst gradient {worst:.2e}')
        assert abs(loss - alone) < 1e-5 * alone and worst < 1e-4, 'transformers let rows see each other'
        old = (lambda n: n.replace('lm_head', 'embed_out')) if name == 'gpt_neox' else (lambda n: n)
        cases[name] = {'loss': loss, 'targets': targets,
                       'gradients': {old(n): [float(g.double().norm()), product(g)] for n, g in grads.items()}}
    result = {'torch': torch.__version__.split('+')[0], 'transformers': transformers.__version__, 'length': LENGTH,
              'sequences': SEQUENCES, 'cases': cases}
    with open(os.path.join(FOLDER, 'packing.json'), 'w', encoding='utf-8') as out:
        out.write(json.dumps(result, indent=None).replace('"cases"', '\n"cases"').replace('}}, "', '}},\n"') + '\n')


if __name__ == '__main__':
    main()
