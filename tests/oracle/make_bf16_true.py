#!/usr/bin/env python3
"""Writes tests/oracle/CASE/bf16_true.json: losses of five AdamW steps by PyTorch, for a model with bf16 weights.

Needs torch, transformers (not needed to build or test headroom: the files are committed).
Usage: make_bf16_true.py [CASE...]

The case's model in torch.bfloat16, its batch, all rows at once; the loss in fp32 from bf16 logits; AdamW with fp32 states and
new weights rounded stochastically to bf16 with torch's random numbers, so that losses agree only to the precision of the
weights. The file has the mean over eight seeds.
"""
import json
import os
import sys

import torch
import torch.nn.functional as F
import transformers

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = ('llama_gqa_tied', 'gpt2', 'qwen2_bias')
LEARNING_RATE = 1e-3


def rounded(values):
    """Rounds to bf16, up with a probability equal to the distance from the lower neighbour."""
    bits = values.view(torch.int32) + torch.randint(0, 1 << 16, values.shape, dtype=torch.int32)
    return (bits & -65536).view(torch.float32).to(torch.bfloat16)


def update(parameter, state, step):
    gradient, weight = parameter.grad.float(), parameter.data.float()
    first, second = state.setdefault(parameter, (torch.zeros_like(weight), torch.zeros_like(weight)))
    first.lerp_(gradient, 0.1)
    second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    move = (first / (1 - 0.9 ** step)) / ((second / (1 - 0.999 ** step)).sqrt() + 1e-8)
    parameter.data.copy_(rounded(weight - LEARNING_RATE * move))


def losses(case, seed):
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(HERE, case, 'model'), attn_implementation='eager',
                                                              dtype=torch.bfloat16)
    model.eval()  # no dropout
    with open(os.path.join(HERE, case, 'batch.json'), encoding='utf-8') as text:
        batch = json.load(text)
    ids, labels = torch.tensor(batch['input_ids']), torch.tensor(batch['labels'])
    rows, state = [], {}
    for step in range(1, 6):
        model.zero_grad()
        logits = model(input_ids=ids).logits
        loss = F.cross_entropy(logits[:, :-1].float().flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        loss.backward()
        rows.append(loss.item())
        for parameter in model.parameters():
            update(parameter, state, step)
    return rows


def main():
    for case in sys.argv[1:] or CASES:
        runs = [losses(case, seed) for seed in range(8)]
        rows = [sum(column) / len(runs) for column in zip(*runs)]
        print([[round(x, 3) for x in run] for run in runs])
        expected = dict(learning_rate=LEARNING_RATE, losses=rows,
                        versions=dict(torch=torch.__version__, transformers=transformers.__version__))
        with open(os.path.join(HERE, case, 'bf16_true.json'), 'w', encoding='utf-8') as out:
            json.dump(expected, out, indent=1)
            out.write('\n')
        print(case, [round(r, 5) for r in rows])


if __name__ == '__main__':
    main()
