#!/usr/bin/env python3
"""Writes sophia.json in this folder: weights that Sophia-G reaches in double precision (Liu et al. 2023, algorithm 3 with the
Gauss-Newton-Bartlett estimator). Standard library only.

Each case has the arguments, rate and decay, the initial weights, the passes (a gradient, and the number of drawn labels if the
pass estimates the curvature), and the weights and the states after the last pass.
"""
import json
import os
import random

COUNT, STEPS = 5, 12


def run(seed, lr, weight_decay, beta1, beta2, rho, interval):
    draws = random.Random(seed)
    numbers = lambda scale: [round(draws.gauss(0, scale), 6) for _ in range(COUNT)]
    weight, mean, hessian = numbers(1), [0.0] * COUNT, [0.0] * COUNT
    first, passes = list(weight), []
    for step in range(STEPS):
        if step % interval == 0:
            labels, gradient = 40 + step, numbers(0.1)
            passes.append(dict(gradient=gradient, drawn_labels=labels))
            hessian = [beta2 * h + (1 - beta2) * labels * g * g for h, g in zip(hessian, gradient)]
        gradient = numbers(0.3)
        passes.append(dict(gradient=gradient, drawn_labels=0))
        mean = [beta1 * m + (1 - beta1) * g for m, g in zip(mean, gradient)]
        ratio = [min(abs(m) / (rho * h + 1e-15), 1) for m, h in zip(mean, hessian)]
        sign = [(m > 0) - (m < 0) for m in mean]
        weight = [w * (1 - lr * weight_decay) - lr * s * r for w, s, r in zip(weight, sign, ratio)]
    return dict(args=f'beta1={beta1},beta2={beta2},rho={rho},interval={interval}', lr=lr, weight_decay=weight_decay, weights=first,
                passes=passes, result=weight, exp_avg=mean, hessian=hessian)


cases = [run(1, 0.01, 0.1, 0.965, 0.99, 0.04, 10),
         run(2, 0.02, 0.0, 0.9, 0.95, 2.0, 3),
         run(3, 0.02, 0.2, 0.8, 0.9, 0.5, 1)]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'sophia.json'), 'w', encoding='utf-8') as out:
    json.dump({'cases': cases}, out, indent=1)
    out.write('\n')
