#!/usr/bin/env python3
"""Writes tests/oracle/length_buckets.json: AdamW steps of PyTorch on rows in the order of --group-by-length.

The order is implemented a second time here, from docs/data.md and docs/techniques/length-buckets.md. Here a batch is padded to
its longest row, in headroom to a bucket. There are more than 64 batches of rows, an odd number of rows, and steps beyond the
first epoch.

Needs torch, transformers, and the model of make_oracle.py. Usage: make_length_buckets.py
rows: their tokens, of which all but the first are targets. steps: also the tokens of each step's batch.
"""
import json
import os

import torch
import transformers

import make_oracle

FOLDER = os.path.dirname(os.path.abspath(__file__))
CASE, SEED, BATCH, LONGEST, ROWS, STEPS = 'llama_gqa_tied', 7, 2, 64, 139, 74
OPTIONS = dict(make_oracle.STEPS, learning_rate=1e-3)
WINDOW = 64 * BATCH
BITS = 2 ** 64 - 1


def mix64(x):
    """SplitMix64: its step and its finaliser."""
    x = (x + 0x9e3779b97f4a7c15) & BITS
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & BITS
    x = (x ^ x >> 27) * 0x94d049bb133111eb & BITS
    return x ^ x >> 31


def shuffled(place, count, seed, epoch):
    """Position `place` in a permutation of `count` items: a Feistel network over a power of four, repeated until inside."""
    half = 0
    while 4 ** half < count:
        half += 1
    key, low = mix64((mix64(seed) + epoch) & BITS), 2 ** half - 1
    while True:
        left, right = place >> half, place & low
        for turn in range(8):
            left, right = right, left ^ mix64(right ^ mix64((key + turn) & BITS)) & low
        place = left << half | right
        if place < count:
            return place


def batches_of_epoch(lengths, epoch):
    """Windows of 64 batches in the epoch's order, each sorted by length; full batches in a seeded order."""
    for begin in range(0, len(lengths), WINDOW):
        window = [shuffled(place, len(lengths), SEED, epoch) for place in range(begin, min(begin + WINDOW, len(lengths)))]
        window.sort(key=lambda row: -lengths[row])  # stable
        seed = mix64(SEED ^ mix64(epoch * len(lengths) + begin + 1))
        whole = len(window) // BATCH
        for batch in range(whole):
            at = shuffled(batch, whole, seed, 0) * BATCH
            yield window[at:at + BATCH]
        if len(window) % BATCH:
            yield window[whole * BATCH:]


def make_rows():
    generator = torch.Generator().manual_seed(5)
    lengths = (torch.rand(ROWS, generator=generator) ** 3 * (LONGEST - 1)).long() + 2
    return [torch.randint(3, 131, (int(length),), generator=generator).tolist() for length in lengths]


def padded(rows):
    longest = max(map(len, rows))
    fill = lambda value: torch.tensor([row + [value] * (longest - len(row)) for row in rows])
    return fill(0), fill(make_oracle.IGNORED)


def main():
    rows = make_rows()
    lengths, batches, epoch = list(map(len, rows)), [], 0
    while len(batches) < STEPS:
        batches += batches_of_epoch(lengths, epoch)
        epoch += 1
    batches = [[rows[row] for row in batch] for batch in batches[:STEPS]]
    model = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(FOLDER, CASE, 'model'),
                                                              attn_implementation='eager', dtype=torch.float32).train()
    steps = make_oracle.curve(model, map(padded, batches), options=OPTIONS)
    for step, batch in zip(steps, batches):
        step['tokens'] = sum(map(len, batch))
    result = dict(torch=torch.__version__.split('+')[0], transformers=transformers.__version__, case=CASE, seed=SEED,
                  global_batch_size=BATCH, max_seq_length=LONGEST, **OPTIONS, rows=rows, steps=steps)
    text = json.dumps(result).replace('"rows"', '\n"rows"').replace('"steps"', '\n"steps"').replace('}, {', '},\n{')
    with open(os.path.join(FOLDER, 'length_buckets.json'), 'w', encoding='utf-8') as out:
        out.write(text + '\n')
    print([round(step['loss'], 3) for step in steps])


if __name__ == '__main__':
    main()
