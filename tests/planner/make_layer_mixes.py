#!/usr/bin/env python3
"""Random instances of the inner problem of recomputation with their optimal values, computed by HiGHS.

Usage: make_layer_mixes.py [--check] tests/planner/layer_mixes.jsonl    (pip install highspy)
--check solves the file's instances again; otherwise the file is written.

There are layers of one or two kinds, and each layer gets one option. An option drops some of a layer's tensors: it keeps the
bytes of the others and computes the dropped ones again. The goal is the least time of recomputation (in microseconds here)
with at most the budget's bytes kept (KiB). Any layer may have any option. A line is {"kinds": by kind [saved by option, redone
by option], "pattern": each layer's kind, "budget", "optimum"}; layer_mixes_test.cpp compares the inner solver with it. Without
highspy the script says so and exits successfully.
"""
import argparse
import json
import random
import sys

INSTANCES = 240


def kind(draw, masks, tensors):
    sizes = [draw.randint(40, 4000) for _ in range(tensors)]
    costs = [draw.randint(20, 3000) for _ in range(tensors)]
    base = draw.randint(100, 1000)
    saved = [base + sum(size for i, size in enumerate(sizes) if not mask >> i & 1) for mask in masks]
    redone = [sum(cost for i, cost in enumerate(costs) if mask >> i & 1) for mask in masks]
    return [saved, redone]


def instance(draw):
    tensors = draw.randint(2, 6)
    everything = (1 << tensors) - 1
    masks = {0, everything} | {draw.randint(1, everything) for _ in range(draw.randint(0, 6))}
    masks = sorted(masks, key=lambda mask: (bin(mask).count('1'), mask))
    layers = draw.randint(4, 96)
    kinds = [kind(draw, masks, tensors)]
    pattern = '0' * layers
    if draw.random() < 0.25:  # every few layers one of another kind: somewhat more bytes, other costs
        more, slower = draw.uniform(0.5, 2), draw.uniform(0.5, 2)
        kinds.append([[int(more * saved) for saved in kinds[0][0]], [int(slower * redone) for redone in kinds[0][1]]])
        period = draw.randint(2, 6)
        pattern = ''.join('01'[layer % period == period - 1] for layer in range(layers))
    least = sum(min(kinds[int(k)][0]) for k in pattern)
    most = sum(max(kinds[int(k)][0]) for k in pattern)
    return {'kinds': kinds, 'pattern': pattern, 'budget': int(least + draw.uniform(0.02, 0.98) * (most - least))}


def solve(highspy, problem):
    model = highspy.Highs()
    model.silent()
    model.setOptionValue('mip_rel_gap', 0.0)
    counts = [problem['pattern'].count(str(k)) for k in range(len(problem['kinds']))]
    kept, seconds = [], []
    for count, (saved, redone) in zip(counts, problem['kinds']):
        chosen = [model.addVariable(lb=0, ub=count, type=highspy.HighsVarType.kInteger) for _ in saved]
        model.addConstr(sum(chosen[1:], chosen[0]) == count)
        kept += [size * x for size, x in zip(saved, chosen)]
        seconds += [cost * x for cost, x in zip(redone, chosen)]
    model.addConstr(sum(kept[1:], kept[0]) <= problem['budget'])
    model.minimize(sum(seconds[1:], seconds[0]))
    return round(model.getInfo().objective_function_value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('file')
    parser.add_argument('--check', action='store_true')
    options = parser.parse_args()
    try:
        import highspy
    except ImportError:
        print('skipped: highspy is not installed', file=sys.stderr)
        return 0
    if options.check:
        with open(options.file, encoding='utf-8') as lines:
            problems = [json.loads(line) for line in lines]
        wrong = [i for i, problem in enumerate(problems) if solve(highspy, problem) != problem['optimum']]
        print(f'{len(problems)} instances, {len(wrong)} with another optimum {wrong or ""}')
        return 1 if wrong else 0
    draw = random.Random(7)
    with open(options.file, 'w', encoding='utf-8') as lines:
        for _ in range(INSTANCES):
            problem = instance(draw)
            problem['optimum'] = solve(highspy, problem)
            lines.write(json.dumps(problem, separators=(',', ':')) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
