#!/usr/bin/env python3
"""Writes sgd.json in this folder: weights that torch.optim.SGD reaches in double precision.

Needs torch (not needed to build or test headroom: the file is committed). The same version gives the same bytes. Each case has
the options, the initial weights, a gradient per step, and the weights and the momentum buffer after the last step.
"""
import json
import os

import torch

COUNT, STEPS = 5, 6


def run(seed, **options):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(COUNT, generator=generator, dtype=torch.float32).double().requires_grad_()
    gradients = torch.randn(STEPS, COUNT, generator=generator, dtype=torch.float32).double()
    first = weight.tolist()
    optimizer = torch.optim.SGD([weight], **options)
    for gradient in gradients:
        weight.grad = gradient
        optimizer.step()
    state = optimizer.state[weight].get('momentum_buffer')
    return dict(options, weights=first, gradients=gradients.tolist(), result=weight.tolist(),
                momentum_buffer=[] if state is None else state.tolist())


cases = [run(1, lr=0.1, momentum=0.0, nesterov=False, weight_decay=0.0),
         run(2, lr=0.1, momentum=0.0, nesterov=False, weight_decay=0.2),
         run(3, lr=0.05, momentum=0.9, nesterov=False, weight_decay=0.1),
         run(4, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'sgd.json'), 'w', encoding='utf-8') as out:
    json.dump({'torch': torch.__version__.split('+')[0], 'cases': cases}, out, indent=1)
    out.write('\n')
