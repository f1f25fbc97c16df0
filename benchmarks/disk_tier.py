#!/usr/bin/env python3
"""Step time with a tier on disk beside the plain run: a model in all the memory it can use, in the least that works without a disk, in half, and in the least with one.

Usage: disk_tier.py HEADROOM_BINARY [--model smollm2-135m] [--directory DIR] [--keep]
The model (a folder of SHARED/data/models, or one with a config.json) gets random weights and random tokens; the machine and
the disk of DIR (the working folder's) are profiled. `--keep` takes both from an earlier start. A run's step is the median
over its steps after the first; losses are compared bitwise (`--arithmetic fixed`). Writes benchmarks/results/disk_tier.md.
Standard library only.
"""
import argparse
import json
import os
import shutil
import statistics

import task

HEAD = '| run | budget, GiB | on disk, GiB | kept there | prefetch | resident, GiB | predicted, s | measured, s | error |\n' + '|' + '---|' * 9 + '\n'


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument('binary')
    parser.add_argument('--shared', default=os.path.join(here, '..', '..', 'shared'))
    parser.add_argument('--model', default='smollm2-135m')
    parser.add_argument('--precision', default='bf16-mixed')
    parser.add_argument('--sequence', type=int, default=256)
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--work', default='build/benchmark-disk')
    parser.add_argument('--directory')
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    return parser.parse_args()


class DiskTier:
    def __init__(self, options):
        self.options, self.work = options, os.path.abspath(options.work)
        self.disk = ['--disk-memory', f'{options.directory or self.work}:64GiB']
        self.losses, self.rows = None, []

    def path(self, name):
        return os.path.join(self.work, name)

    def prepare(self):
        if self.options.keep and os.path.exists(self.path('model')):
            return
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        model = self.options.model
        folder = model if os.path.isdir(model) else os.path.join(self.options.shared, 'data', 'models', model)
        config = os.path.join(folder, 'config.json')
        task.write_random_rows(self.path('rows.jsonl'), task.vocabulary_of(config), self.options.batch * self.options.steps, self.options.sequence)
        task.run([self.options.binary, 'profile', '-o', self.path('profile.json'), '--disk', self.options.directory or self.work])
        task.run([self.options.binary, 'init', '--config', config, '--tokenizer', 'bytes', '--output-dir', self.path('model')])

    def common(self, memory, more):
        return ['--model', self.path('model'), '--memory', memory, '--precision', self.options.precision, '--global-batch-size', self.options.batch,
                '--max-seq-length', self.options.sequence, '--threads', self.options.threads, '--profile', self.path('profile.json'), '--arithmetic', 'fixed', *more]

    def plan(self, memory, more=()):
        return json.loads(task.run([self.options.binary, 'plan', '--json', *self.common(memory, more)], accepted=(0, 3)).stdout)

    def measure(self, name, memory, more=()):
        plan, output = self.plan(memory, more), self.path('run')
        shutil.rmtree(output, ignore_errors=True)
        task.run([self.options.binary, 'train', *self.common(memory, more), '--data', self.path('rows.jsonl'), '--max-steps', self.options.steps,
                  '--output-dir', output, '--quiet'])
        with open(os.path.join(output, 'metrics.jsonl'), encoding='utf-8') as lines:
            steps = [json.loads(line) for line in lines]
        with open(os.path.join(output, 'run.json'), encoding='utf-8') as text:
            run = json.load(text)
        shutil.rmtree(output)
        losses = [step['loss'] for step in steps]
        self.losses = self.losses or losses
        assert losses == self.losses, f'{name}: {losses} instead of {self.losses}'
        assert run['disk_planned_bytes'] == run['disk_measured_bytes'] and run['arena_planned_bytes'] == run['arena_measured_bytes'], run
        measured = statistics.median(step['seconds'] for step in steps[1:])
        kept = {t['name']: t['value'] for t in plan['techniques']}
        what = ', '.join(n.split('-', 1)[1] + (f' of {v.split()[0]} layers' if v[0].isdigit() else '') for n, v in kept.items() if n.startswith('offload-') and v != 'off')
        predicted, gib = plan['predicted_step_seconds'], 1 << 30
        self.rows.append(f"| {name} | {memory / gib:.2f} | {run['disk_planned_bytes'] / gib:.2f} | {what or '-'} | {kept['prefetch']} | "
                         f"{run['process_peak_rss_bytes'] / gib:.2f} | {predicted:.3f} | {measured:.3f} | {predicted / measured * 100 - 100:+.1f} % |")
        print(self.rows[-1], flush=True)

    def run(self):
        self.prepare()
        plenty = self.plan(1 << 40)
        peak, least, least_on_disk = plenty['peak_bytes'], plenty['minimum_bytes'], self.plan(1 << 40, self.disk)['minimum_bytes']
        self.measure('plain', peak)
        self.measure('least without a disk', least)
        self.measure('half', max(peak // 2, least_on_disk), self.disk)
        self.measure('least with a disk', least_on_disk, self.disk)
        self.write(peak)

    def write(self, peak):
        with open(self.path('profile.json'), encoding='utf-8') as text:
            profile = json.load(text)
        read, write = (profile[f'disk_{way}_bytes_per_second'] / 1e9 for way in ('read', 'write'))
        head = (f'{self.options.model}, {self.options.precision}, {self.options.batch} x {self.options.sequence} tokens a step, {self.options.threads} threads, '
                f'all of it in {peak / (1 << 30):.2f} GiB; a disk that reads {read:.2f} GB/s while it writes {write:.2f} GB/s. Losses are bitwise the same in all runs, the '
                'arena and the file as large as planned. `benchmarks/disk_tier.py` says how.\n\n')
        with open(os.path.join(self.options.results, 'disk_tier.md'), 'w', encoding='utf-8') as out:
            out.write(head + HEAD + '\n'.join(self.rows) + '\n')


if __name__ == '__main__':
    DiskTier(arguments()).run()
