#!/usr/bin/env python3
"""Where a training step's time goes, op by op, beside what the machine can do at most: a roofline table.

Usage: roofline.py HEADROOM_BINARY MACHINE_LIMITS_BINARY [--shared ../shared] [--precision bf16-mixed,...] [--memory 8GiB]
MACHINE_LIMITS_BINARY (target machine_limits) measures oneDNN's GEMM rates and the memory's read bandwidth before and
after each run, so that an op's share of its limit is of the same minutes: share = max(flops / GEMM rate, bytes / read
bandwidth) / seconds. Products of bf16 operands, and of fp32 operands multiplied as bf16 numbers, are held against the
bf16 rate (three products of it for "bf16x3"). The step trains SHARED/data/models/MODEL with random weights on random tokens; times are
those of the run's second step (operations.json). Writes benchmarks/results/NAME.md. Standard library only.
"""
import json
import os
import shutil

import task


NOTE = """The fp32 limit is that of oneDNN's vector arithmetic. On AMX tiles fp32 operands are multiplied as three bf16 parts each, and six of
their products are summed, so that a sixth of the bf16 limit is their limit: rows above 100 % are of such products. oneDNN's GEMM
limit is of one shape; other shapes may run faster than it.
"""


def arguments():
    parser = task.machine_parser(__doc__, 'roofline', '8GiB', 'one budget, or one per precision, separated by commas')
    parser.add_argument('--precision', default='32-true,bf16-mixed')
    parser.add_argument('--sequence', type=int, default=512)
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--steps', type=int, default=6)
    parser.add_argument('--extra', default='', help="more options for headroom's train")
    parser.add_argument('--rows', type=int, default=24, help='rows of the table; the rest is summed')
    parser.add_argument('--work', default='build/benchmark')
    return parser.parse_args()


class Roofline:
    def __init__(self, options):
        self.options = options
        self.work = os.path.abspath(options.work)
        self.config = os.path.join(options.shared, 'data', 'models', options.model, 'config.json')

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        task.write_random_rows(os.path.join(self.work, 'rows.jsonl'), task.vocabulary_of(self.config),
                               self.options.batch * self.options.steps, self.options.sequence)
        task.run([self.options.binary, 'profile', '-o', os.path.join(self.work, 'profile.json')])
        task.run([self.options.binary, 'init', '--config', self.config, '--tokenizer', 'bytes', '--output-dir',
             os.path.join(self.work, 'model')])

    def limits(self):
        return json.loads(task.run([self.options.limits, self.options.threads]).stdout)

    def train(self, precision, memory):
        out = os.path.join(self.work, 'run')
        shutil.rmtree(out, ignore_errors=True)
        before = self.limits()
        task.run([self.options.binary, 'train', '--model', os.path.join(self.work, 'model'), '--data',
             os.path.join(self.work, 'rows.jsonl'), '--memory', memory, '--output-dir', out, '--precision', precision,
             '--global-batch-size', self.options.batch, '--max-seq-length', self.options.sequence, '--max-steps',
             self.options.steps, '--threads', self.options.threads, '--profile',
             os.path.join(self.work, 'profile.json'), *self.options.extra.split()])
        after = self.limits()
        limits = {name: (before[name] + after[name]) / 2 for name in before}
        operations = task.read_json(out, 'operations.json')['operations']
        plan = task.read_json(out, 'plan.json')
        return operations, limits, plan

    def section(self, precision, memory):
        operations, limits, plan = self.train(precision, memory)
        total = sum(row['seconds'] for row in operations)
        tokens = self.options.batch * self.options.sequence
        lines = [f'## {precision}, budget {memory}{" " + self.options.extra if self.options.extra else ""}', '',
                 f'Step {total:.3f} s, predicted {plan["predicted_step_seconds"]:.3f} s, {tokens / total:.0f} tokens/s, '
                 f'peak planned {plan["peak_bytes"] / 2 ** 30:.2f} GiB, micro-batch {plan["micro_batch_size"]}. Limits: '
                 f'{task.describe_limits(limits)}.', '',
                 '| op | stage | operands | calls | GFLOP | MB | ms | of the step | GFLOP/s | GB/s | share of the limit | predicted / measured |',
                 '|---|---|---|---|---|---|---|---|---|---|---|---|']
        ideal = 0
        for index, row in enumerate(operations):
            row['ideal'] = self.ideal(row, limits)
            ideal += row['ideal']
            if index < self.options.rows:
                lines.append(self.line(row, total))
        rest = operations[self.options.rows:]
        if rest:
            summed = {name: sum(row[name] for row in rest)
                      for name in ('calls', 'flops', 'bytes', 'seconds', 'predicted_seconds', 'ideal')}
            lines.append(self.line({'op': f'{len(rest)} more', 'stage': '', 'operands': '', **summed}, total))
        by_limit = {}
        for row in operations:
            by_limit.setdefault(row['op'], [0.0, 0.0])
            by_limit[row['op']][0] += row['seconds']
            by_limit[row['op']][1] += row['ideal']
        rate = limits['f32_flops_per_second' if precision == '32-true' else 'bf16_flops_per_second']
        flops = sum(row['flops'] for row in operations if row['stage'] != 'recompute')
        lines += ['', f'{flops / 1e9:.0f} GFLOP in {total:.3f} s, recomputation not counted: {100 * flops / total / rate:.0f} % of the '
                  'GEMM rate.', '',
                  f'All ops at their limits would take {ideal:.3f} s: the step runs at {100 * ideal / total:.0f} % of '
                  'the roofline. By op: ' +
                  ', '.join(f'{op} {100 * seconds / total:.1f} % of the time at {100 * bound / seconds:.0f} %'
                            for op, (seconds, bound) in sorted(by_limit.items(), key=lambda item: -item[1][0])
                            if seconds > 0.005 * total) + '.', '']
        print('\n'.join(lines), flush=True)
        return lines

    @staticmethod
    def ideal(row, limits):
        """Seconds at the limit: of the GEMM rate for products, of the memory for the rest."""
        operands = row['operands']
        narrow = operands.startswith('bf16') or operands.endswith(('as bf16', 'as bf16x3'))
        rate = limits['bf16_flops_per_second' if narrow else 'f32_flops_per_second']
        if operands.endswith('bf16x3'):
            rate /= 3
        return max(row['flops'] / rate, row['bytes'] / limits['read_bytes_per_second'])

    @staticmethod
    def line(row, total):
        seconds = max(row['seconds'], 1e-9)
        return (f'| {row["op"]} | {row["stage"]} | {row["operands"]} | {row["calls"]} | {row["flops"] / 1e9:.1f} | '
                f'{row["bytes"] / 1e6:.0f} | {1e3 * seconds:.1f} | {100 * seconds / total:.1f} % | '
                f'{row["flops"] / seconds / 1e9:.0f} | {row["bytes"] / seconds / 1e9:.1f} | '
                f'{100 * row["ideal"] / seconds:.0f} % | {row["predicted_seconds"] / seconds:.2f} |')

    def all(self):
        self.prepare()
        precisions = self.options.precision.split(',')
        memories = self.options.memory.split(',')
        memories += memories[-1:] * (len(precisions) - len(memories))
        lines = [f'# A step of {self.options.model}, op by op', '',
                 f'{task.day_and_machine()}. Sequence {self.options.sequence}, global batch {self.options.batch}, {self.options.threads} threads. '
                 '`benchmarks/roofline.py` says how.', '', *NOTE.splitlines(), '']
        for precision, memory in zip(precisions, memories):
            lines += self.section(precision, memory)
        with open(os.path.join(self.options.results, self.options.name + '.md'), 'w', encoding='utf-8') as out:
            out.write('\n'.join(lines).rstrip() + '\n')


if __name__ == '__main__':
    Roofline(arguments()).all()
