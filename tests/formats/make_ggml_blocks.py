#!/usr/bin/env python3
"""Writes ggml_blocks.json: blocks quantised and dequantised by the package gguf (PyPI). Needs gguf and numpy.

Usage: make_ggml_blocks.py
"quantised": type, values (f32) and the blocks that ggml's reference makes of them. "decoded": type, blocks and their values.
Bytes are in hexadecimal.
"""
import json
import os

import numpy as np
from gguf import GGMLQuantizationType, quants

QUANTISED = ('F16', 'BF16', 'Q8_0', 'Q4_0')
DECODED = ('Q8_0', 'Q4_0', 'Q4_K', 'Q6_K')
BYTES = {'Q8_0': 34, 'Q4_0': 18, 'Q4_K': 144, 'Q6_K': 210}
HALVES = {'Q8_0': (0,), 'Q4_0': (0,), 'Q4_K': (0, 2), 'Q6_K': (208,)}  # offsets of a block's f16 numbers


def values(random):
    """Blocks of 32: usual weights, zeros, one large element, ties, tiny and subnormal ones."""
    rows = [random.standard_normal(32) * scale for scale in (0.02, 1.0, 300.0, 1e-6, 1e-9)]
    rows.append(np.zeros(32))
    rows.append(np.where(np.arange(32) == 7, -5.0, 0.01))
    rows.append(np.arange(-16, 16) / 2)
    rows.append(np.tile([1.0, -1.0], 16))
    rows.append(np.concatenate([np.arange(-127, 0, 8) + 0.5, [127.0], np.arange(0, 120, 8) - 0.5])[:32])
    return np.array(rows, dtype=np.float32)


def main():
    random = np.random.default_rng(22)
    out = {'quantised': [], 'decoded': []}
    given = values(random)
    for name in QUANTISED:
        made = quants.quantize(given, GGMLQuantizationType[name])
        out['quantised'].append({'type': name, 'values': given.tobytes().hex(), 'blocks': made.tobytes().hex()})
    for name in DECODED:
        blocks = random.integers(0, 256, (6, BYTES[name]), dtype=np.uint8)
        for at in HALVES[name]:
            blocks[:, at:at + 2] = (random.standard_normal(6) * 0.01).astype(np.float16).reshape(6, 1).view(np.uint8)
        found = quants.dequantize(blocks, GGMLQuantizationType[name]).astype(np.float32)
        out['decoded'].append({'type': name, 'blocks': blocks.tobytes().hex(), 'values': found.tobytes().hex()})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ggml_blocks.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(out, file, indent=1)
        file.write('\n')


if __name__ == '__main__':
    main()
