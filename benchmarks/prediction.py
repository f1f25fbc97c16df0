#!/usr/bin/env python3
"""Predicted step time beside the measured one, over plans of several models from the least budget to plenty.

Usage: prediction.py HEADROOM_BINARY [--models gpt2,smollm2-135m,DIR] [--precisions 32-true,bf16-mixed] [--budgets 4]
Each model (a folder of SHARED/data/models, or one with a config.json) gets random weights and random tokens. Per
precision the budgets are the least one, plenty (where more changes nothing), and those between in equal ratios. The
machine is profiled again before each model. A run's measured step is the median over its steps after the first.
Writes benchmarks/results/prediction.md and .json. Standard library only.
"""
import argparse
import json
import os
import shutil
import statistics

import task


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument('binary')
    parser.add_argument('--shared', default=os.path.join(here, '..', '..', 'shared'))
    parser.add_argument('--models', default=os.path.join(here, 'doctor_data', 'models', 'llama-25m')
                        + ',gpt2,smollm2-135m')
    parser.add_argument('--precisions', default='32-true,bf16-mixed')
    parser.add_argument('--budgets', type=int, default=4)
    parser.add_argument('--sequence', type=int, default=256)
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--steps', type=int, default=4)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--work', default='build/benchmark')
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    parser.add_argument('--name', default='prediction')
    return parser.parse_args()


class Prediction:
    def __init__(self, options):
        self.options = options
        self.work = os.path.abspath(options.work)
        self.rows = []

    def path(self, name):
        return os.path.join(self.work, name)

    def prepare(self, model):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        folder = model if os.path.isdir(model) else os.path.join(self.options.shared, 'data', 'models', model)
        config = os.path.join(folder, 'config.json')
        task.write_random_rows(self.path('rows.jsonl'), task.vocabulary_of(config),
                               self.options.batch * self.options.steps, self.options.sequence)
        task.run([self.options.binary, 'profile', '-o', self.path('profile.json')])
        task.run([self.options.binary, 'init', '--config', config, '--tokenizer', 'bytes', '--output-dir',
             self.path('model')])

    def train_options(self, precision, memory):
        return ['--model', self.path('model'), '--memory', memory, '--precision', precision, '--global-batch-size',
                self.options.batch, '--max-seq-length', self.options.sequence, '--threads', self.options.threads,
                '--profile', self.path('profile.json')]

    def plan(self, precision, memory):
        return json.loads(task.run([self.options.binary, 'plan', '--json', *self.train_options(precision, memory)],
                                   (0, 3)).stdout)

    def budgets(self, precision):
        plenty = self.plan(precision, 64 << 30)
        least, most = plenty['minimum_bytes'], plenty['peak_bytes']
        count = self.options.budgets
        return [int(least * (most / least) ** (i / (count - 1))) + (1 << 16) * (0 < i) for i in range(count)]

    def measure(self, model, precision, budget):
        out = self.path('run')
        shutil.rmtree(out, ignore_errors=True)
        task.run([self.options.binary, 'train', *self.train_options(precision, budget), '--data', self.path('rows.jsonl'),
             '--output-dir', out, '--max-steps', self.options.steps, '--learning-rate', '1e-5'])
        steps = [row['seconds'] for row in task.read_steps(out)]
        plan = task.read_json(out, 'plan.json')
        measured = statistics.median(steps[1:])
        techniques = {t['name']: t['value'] for t in plan['techniques']}
        row = {'model': os.path.basename(model), 'precision': precision, 'budget_bytes': budget,
               'predicted_seconds': plan['predicted_step_seconds'], 'measured_seconds': measured,
               'error': plan['predicted_step_seconds'] / measured - 1, 'micro_batch_size': plan['micro_batch_size'],
               'recompute': techniques.get('recompute', ''), 'chunked_loss': techniques.get('chunked-loss', '')}
        self.rows.append(row)
        print(f'{row["model"]} {precision} {budget / 2 ** 30:.2f} GiB: predicted {row["predicted_seconds"]:.3f} s, '
              f'measured {measured:.3f} s, {100 * row["error"]:+.1f} %', flush=True)

    def write(self):
        errors = sorted(abs(row['error']) for row in self.rows)
        summary = {'plans': len(errors), 'median_error': statistics.median(errors),
                   'p90_error': errors[min(len(errors) - 1, int(0.9 * len(errors)))], 'largest_error': errors[-1]}
        base = os.path.join(self.options.results, self.options.name)
        with open(base + '.json', 'w', encoding='utf-8') as out:
            json.dump({'summary': summary, 'rows': self.rows}, out, indent=1)
            out.write('\n')
        lines = [f'{task.day_and_machine()}. Sequence {self.options.sequence}, global batch {self.options.batch}, {self.options.threads} threads; '
                 f'{summary["plans"]} plans: error of the predicted step, median {100 * summary["median_error"]:.1f} %, p90 '
                 f'{100 * summary["p90_error"]:.1f} %, largest {100 * summary["largest_error"]:.1f} %. '
                 '`benchmarks/prediction.py` says how.', '',
                 '| model | precision | budget, GiB | micro-batch | recompute | loss chunk | predicted, s | measured, s | error |',
                 '|---|---|---|---|---|---|---|---|---|']
        for row in self.rows:
            lines.append(f'| {row["model"]} | {row["precision"]} | {row["budget_bytes"] / 2 ** 30:.2f} | '
                         f'{row["micro_batch_size"]} | {row["recompute"]} | {row["chunked_loss"]} | '
                         f'{row["predicted_seconds"]:.3f} | {row["measured_seconds"]:.3f} | {100 * row["error"]:+.1f} % |')
        with open(base + '.md', 'w', encoding='utf-8') as out:
            out.write('\n'.join(lines) + '\n')
        print('\n'.join(lines))

    def all(self):
        for model in self.options.models.split(','):
            self.prepare(model)
            for precision in self.options.precisions.split(','):
                for budget in self.budgets(precision):
                    self.measure(model, precision, budget)
        self.write()


if __name__ == '__main__':
    Prediction(arguments()).all()
