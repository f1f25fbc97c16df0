#!/usr/bin/env python3
"""What budgets for activations buy, beside PyTorch's activation_memory_budget, and what the choice per layer gains.

Usage: recompute_budgets.py HEADROOM_BINARY [--models DIR] [--figure docs/images/recompute_budgets.svg] [--results DIR]
The figure: planned peaks of SmolLM2-135M by the part of the activations that may be kept, 0 for the least that recomputation
alone reaches and 1 for keeping everything, and the peaks that pytorch#197838 reports for the same numbers. The table:
predicted seconds of a step under a budget, with the planner's choice and with the best of twelve patterns: none, cheap
results of half or all layers, attention too, and everything in so many eighths of the layers with cheap results in the
rest. Predictions of a shipped profile, the same on every machine. Standard library only.
"""
import argparse
import json
import os
import subprocess
import sys

PYTORCH = [(0.05, 1144), (0.10, 508), (0.15, 275), (0.20, 325), (0.30, 411)]  # budget, MB of the real peak
PAIRS = [('smollm2-135m', 512, 0.02), ('smollm2-135m', 512, 0.1), ('smollm2-135m', 8192, 0.05), ('smollm2-135m', 8192, 0.2),
         ('mistral-7b', 2048, 0.05), ('llama-3.1-70b', 2048, 0.2), ('gemma3-1b-it', 4096, 0.05), ('bert-base-uncased', 512, 0.05)]


class Planner:
    def __init__(self, binary, models):
        self.binary, self.models = binary, models

    def plan(self, model, sequence, memory, *more):
        done = subprocess.run([self.binary, 'plan', '--json', '--model', os.path.join(self.models, model), '--max-seq-length', str(sequence),
                               '--global-batch-size', '8', '--profile', 'cpu-avx512', '--threads', '2', '--memory', str(memory), *more],
                              capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            sys.exit(done.stderr)
        return json.loads(done.stdout)

    def range(self, model, sequence, *more):
        plenty = self.plan(model, sequence, 1 << 52, *more)
        return plenty['minimum_bytes'], plenty['peak_bytes']


def setting(plan):
    return next(t['value'] for t in plan['techniques'] if t['name'] == 'recompute')


def patterns(layers):
    yield f'{layers} x keep-all'
    yield f'{layers // 2} x drop-cheap, {layers - layers // 2} x keep-all'
    yield 'drop-cheap'
    yield 'drop-attention'
    for eighth in range(1, 8):
        treated = (layers * eighth + 7) // 8
        if treated < layers:
            yield f'{treated} x block-input, {layers - treated} x drop-cheap'
    yield 'block-input'


def table(planner):
    rows = []
    for model, sequence, part in PAIRS:
        least, most = planner.range(model, sequence)
        budget = int(least + part * (most - least))
        layers = sum(int(run.split(' x ')[0]) for run in setting(planner.plan(model, sequence, 1 << 52)).replace(';', ',').split(','))
        fitting = [p for p in (planner.plan(model, sequence, budget, '--technique', 'recompute=' + text) for text in patterns(layers))
                   if p['feasible']]
        best = min(fitting, key=lambda p: p['predicted_step_seconds'])
        own = planner.plan(model, sequence, budget)
        change = 100 * (own['predicted_step_seconds'] / best['predicted_step_seconds'] - 1)
        rows.append(f'| {model}, {sequence} | {budget / 2**30:.2f} GiB | {best["predicted_step_seconds"]:.3f} | {setting(best)} | '
                    f'{own["predicted_step_seconds"]:.3f} | {setting(own)} | {change:+.2f} % |')
        print(rows[-1], flush=True)
    return rows


def curve(planner):
    pinned = ('--micro-batch-size', '8', '--technique', 'chunked-loss=64', '--technique', 'sequence-chunks=off')
    least, most = planner.range('smollm2-135m', 512, *pinned)
    points = []
    for step in range(41):
        part = step / 40
        plan = planner.plan('smollm2-135m', 512, int(least + part * (most - least)), *pinned)
        points.append((part, plan['peak_bytes'] / 1e6, plan['predicted_step_seconds']))
    return points


def panel(x, title, unit, points, limits, budgets=None):
    """An SVG group of 340 x 260: points over (0 .. most of x, 0 .. most of y), and the budgets as a line."""
    wide, high = limits
    left, top, width, height = x + 52, 40, 272, 176
    at = lambda p: (left + width * p[0] / wide, top + height * (1 - p[1] / high))
    out = [f'<text x="{left}" y="24" class="t">{title}</text>']
    for i in range(5):
        value = high * i / 4
        y = top + height * (1 - i / 4)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" class="g"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        out.append(f'<text x="{left + width * i / 4:.1f}" y="{top + height + 18}" text-anchor="middle">{wide * i / 4:g}</text>')
    out.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">budget: part of the activations</text>')
    out.append(f'<text x="{left - 44}" y="{top - 6}">{unit}</text>')
    for line, name in ((budgets, 'b'), (points, 'l')):
        if line:
            out.append(f'<polyline class="{name}" points="' + ' '.join('%.1f,%.1f' % at(p) for p in line) + '"/>')
    out += ['<circle cx="%.1f" cy="%.1f" r="3"/>' % at(p) for p in points]
    return '\n'.join(out)


def figure(points):
    peaks = [(part, peak) for part, peak, _ in points]
    most = max(peak for _, peak in peaks)
    high = 1000 * -(-most // 1000)
    budgets = [(0, peaks[0][1]), (1, most)]
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 270" font-family="sans-serif" font-size="11">\n'
            '<style>.t{font-size:13px;font-weight:bold}.g{stroke:#ccc}.l{fill:none;stroke:#06c;stroke-width:1.5}'
            '.b{fill:none;stroke:#999;stroke-dasharray:4 3}circle{fill:#06c}</style>\n'
            '<rect width="720" height="270" fill="#fff"/>\n'
            + panel(0, 'PyTorch (pytorch#197838): real peak', 'MB', PYTORCH, (0.4, 1200)) + '\n'
            + panel(360, 'headroom, SmolLM2-135M: planned peak', 'MB', peaks, (1, high), budgets) + '\n</svg>\n')


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--models', default=os.path.join(here, '..', 'tests', 'data_files', 'models'))
    parser.add_argument('--figure', default=os.path.join(here, '..', 'docs', 'images', 'recompute_budgets.svg'))
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    options = parser.parse_args()
    planner = Planner(options.binary, options.models)
    points = curve(planner)
    falls = sum(after[1] < before[1] for before, after in zip(points, points[1:]))
    slower = sum(after[2] > before[2] for before, after in zip(points, points[1:]))
    print(f'{len(points)} budgets: {falls} peaks below the one of a smaller budget, {slower} steps slower')
    with open(options.figure, 'w', encoding='utf-8') as out:
        out.write(figure(points))
    rows = table(planner)
    with open(os.path.join(options.results, 'recompute_budgets.md'), 'w', encoding='utf-8') as out:
        out.write('Predicted seconds of a step by profile `cpu-avx512`, 2 threads, 8 sequences a step; `benchmarks/recompute_budgets.py` says how.\n\n'
                  '| model, tokens | budget | best of twelve patterns | its layers | chosen per layer | its layers | change |\n|---|---|---|---|---|---|---|\n'
                  + '\n'.join(rows) + '\n\n'
                  f'SmolLM2-135M, 512 tokens, micro-batch 8, {len(points)} budgets from the least to keeping everything: {falls} of them with a '
                  f'peak below that of a smaller budget, {slower} with a slower step.\n')


if __name__ == '__main__':
    main()
