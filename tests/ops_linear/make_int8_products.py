#!/usr/bin/env python3
"""Writes int8_products.json: a linear layer of torchao's int8_mixed_precision_training, forward and backward.

Needs torch and torchao (not needed to build or test headroom: the file is committed). Usage: make_int8_products.py
The operands are those of the test harness, Tensor::random of a seed in [-1, 1]: x, w, bias and dy with seeds 1 to 4. Row 2 of x and column
3 of dy are zero. The file has the sizes and, as the bits of f32 numbers, y = x w^T + bias, dx and dw.
"""
import json
import os

import torch
import torchao
from torchao.prototype.quantized_training import Int8MixedPrecisionTrainingConfig
from torchao.quantization import quantize_

ROWS, INS, OUTS = 9, 70, 37
HERE = os.path.dirname(os.path.abspath(__file__))
MASK = 2**64 - 1


def random(shape, seed):
    """As Tensor::random of tests/ops_support/op_harness.h."""
    count = torch.Size(shape).numel()
    state, values = (seed * 0x9E3779B97F4A7C15 + 0x1234567) & MASK, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        values.append((state >> 11) / 4503599627370496.0 - 1.0)
    return torch.tensor(values, dtype=torch.float64).float().reshape(shape)


def bits(tensor):
    return tensor.detach().contiguous().view(torch.int32).flatten().tolist()


def main():
    x, dy = random((ROWS, INS), 1), random((ROWS, OUTS), 4)
    x[2] = 0
    dy[:, 3] = 0
    x.requires_grad_()
    layer = torch.nn.Linear(INS, OUTS)
    layer.weight.data, layer.bias.data = random((OUTS, INS), 2), random((OUTS,), 3)
    model = torch.nn.Sequential(layer)
    quantize_(model, Int8MixedPrecisionTrainingConfig(module_swap=True))
    y = model(x)
    y.backward(dy)
    plain = x.detach() @ random((OUTS, INS), 2).T + random((OUTS,), 3)
    assert 1e-3 < (y.detach() - plain).abs().max() < 0.2, 'not multiplied in 8 bits'
    golden = {'torch': torch.__version__, 'torchao': torchao.__version__, 'rows': ROWS, 'ins': INS, 'outs': OUTS, 'y': bits(y),
              'dx': bits(x.grad), 'dw': bits(layer.weight.grad)}
    with open(os.path.join(HERE, 'int8_products.json'), 'w') as file:
        json.dump(golden, file, separators=(',', ':'))
        file.write('\n')


if __name__ == '__main__':
    main()
