#!/usr/bin/env python3
"""What jobs were measured to take, what doctor estimates, and what other estimators say.

    doctor_estimates.py PROGRAM [TABLE.tsv ...] [--markdown]

PROGRAM is doctor_estimate_cases of the build; the tables default to those beside this script. Estimators beside ours, restated from their sources:
  accelerate  `accelerate estimate-memory`, "Training using Adam": the largest of model, gradients, optimizer and step. float32: 4 x weights in
              float32; 16 bits: 2 x weights in float32. It knows neither batch nor sequence.
  litgpt      `litgpt validate --training`: 4 x (weights with an untied head in the dtype).
  zero2/zero3 DeepSpeed's estimate_zero{2,3}_model_states_mem_needs on the job's number of devices, nothing offloaded: 2 and 18 bytes a
              parameter over the devices, or the largest layer x 4 + 18 bytes a parameter over the devices. States only.
"""
import argparse, math, os, subprocess

def rivals(parameters, largest, tied_table, gpus, dtype):
    width = 4 if dtype == 'float32' else 2
    return {'accelerate': parameters * (16 if width == 4 else 8), 'litgpt': 4 * width * (parameters + tied_table),
            'zero2': 2 * parameters + 18 * parameters / gpus, 'zero3': 4 * largest + 18 * parameters / gpus}

def quantile(values, q):
    values = sorted(values)
    return values[max(0, math.ceil(q * len(values)) - 1)]

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('program'); p.add_argument('tables', nargs='*'); p.add_argument('--markdown', action='store_true'); a = p.parse_args()
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'doctor_data')
    tables = a.tables or [os.path.join(here, n) for n in ('published.tsv', 'cpu_runs.tsv')]
    out = subprocess.run([a.program, *tables], check=True, capture_output=True, text=True).stdout
    names = ['accelerate', 'litgpt', 'zero2', 'zero3']
    head = ['source', 'case', 'split', 'statistic', 'measured', 'low', 'doctor', 'high', 'error'] + names
    rows, errors, inside = [], {}, []
    for line in out.splitlines():
        source, name, split, statistic, measured, low, ours, high, parameters, layer, table, gpus, dtype = line.split('\t')
        measured, low, ours, high = map(float, (measured, low, ours, high))
        said = rivals(float(parameters), float(layer), float(table), int(gpus), dtype)
        rows.append([source, name, split, statistic] + [f'{x / 2**30:.2f}' for x in (measured, low, ours, high)] + [f'{100 * (ours / measured - 1):+.1f} %'] +
                    [f'{said[n] / 2**30:.2f}' for n in names])
        inside.append(low <= measured <= high)
        for key in (source, split, 'all'):
            for who, value in {'doctor': ours, **said}.items(): errors.setdefault((key, who), []).append(abs(value / measured - 1))
    edge = ('| ', ' | ', ' |') if a.markdown else ('', '  ', '')
    widths = [max(len(r[i]) for r in rows + [head]) for i in range(len(head))]
    show = lambda cells: print(edge[0] + edge[1].join(c.ljust(w) if i < 4 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))) + edge[2])
    show(head)
    if a.markdown: print('|' + '|'.join('---' if i < 4 else '---:' for i in range(len(head))) + '|')
    for r in rows: show(r)
    print('\nGiB. |error|, median / 90th percentile, in percent:')
    for key in ['A', 'B', 'C', 'peft', 'cpu', 'fit', 'test', 'all']:
        if (key, 'doctor') not in errors: continue
        cells = [f'{who} {100 * quantile(errors[key, who], .5):.1f} / {100 * quantile(errors[key, who], .9):.1f}' for who in ['doctor'] + names]
        print(f'{"- " if a.markdown else ""}{key} ({len(errors[key, "doctor"])}): ' + ', '.join(cells))
    print(f'Within the range low to high: {sum(inside)} of {len(inside)}')

if __name__ == '__main__': main()
