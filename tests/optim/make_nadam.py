#!/usr/bin/env python3
"""Writes nadam.json in this folder: weights that torch.optim.NAdam reaches in double precision.

Needs torch (not needed to build or test headroom: the file is committed). The same version gives the same bytes. Each case has
the arguments, rate and decay, the initial weights, a gradient per step, and the weights and the states after the last step.
"""
import json
import os

import torch

COUNT, STEPS = 5, 12


def run(seed, lr, weight_decay, beta1, beta2, **options):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(COUNT, generator=generator, dtype=torch.float32).double().requires_grad_()
    gradients = torch.randn(STEPS, COUNT, generator=generator, dtype=torch.float32).double()
    first = weight.tolist()
    optimizer = torch.optim.NAdam([weight], lr=lr, weight_decay=weight_decay, betas=(beta1, beta2), **options)
    for gradient in gradients:
        weight.grad = gradient
        optimizer.step()
    state = optimizer.state[weight]
    given = dict(beta1=beta1, beta2=beta2, **options)
    args = ','.join(f'{key}={str(value).lower()}' for key, value in given.items())
    return dict(args=args, lr=lr, weight_decay=weight_decay, weights=first, gradients=gradients.tolist(), result=weight.tolist(),
                exp_avg=state['exp_avg'].tolist(), exp_avg_sq=state['exp_avg_sq'].tolist())


cases = [run(1, 0.01, 0.0, 0.9, 0.999, eps=1e-8, momentum_decay=4e-3, decoupled_weight_decay=False),
         run(2, 0.02, 0.2, 0.9, 0.999, eps=1e-8, momentum_decay=4e-3, decoupled_weight_decay=False),
         run(3, 0.02, 0.2, 0.8, 0.95, eps=1e-3, momentum_decay=0.5, decoupled_weight_decay=True)]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'nadam.json'), 'w', encoding='utf-8') as out:
    json.dump({'torch': torch.__version__.split('+')[0], 'cases': cases}, out, indent=1)
    out.write('\n')
