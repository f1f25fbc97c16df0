#!/usr/bin/env python3
"""headroom and PyTorch side by side on one training task: tokens per second and peak resident memory, as ratios.

Usage: compare_torch.py HEADROOM_BINARY --torch-python PYTHON [--shared ../shared] [--precision 32-true/highest,...]
PYTHON is an interpreter with torch, transformers and psutil; it runs SHARED/peers/torch_train.py, plain, with
--checkpointing and with --compile. A precision may name how fp32 matrices are multiplied, "32-true/medium": the peer gets
--matmul medium, headroom --matmul-precision medium and, a second run, the more exact high. Both sides train
SHARED/data/models/smollm2-135m (random weights, random tokens) at sequence 512 and global batch 4 (--sequence, --batch)
with AdamW and clipping on 2 threads. Runs alternate (every round runs every side once); each takes the median over its steps after
the first. The speed-up is a ratio within each round, to that round's fastest peer; the headline is its median over the rounds, beside
its least and largest. A record needs three rounds of ten counted steps; with less the table is printed and nothing is written.
headroom's peak is the kernel's count, the peers' the largest of 10 ms samples (torch_train.py). headroom's budget
is --memory, else a share of what the compiled peer took (0.5 in fp32, 0.6 in bf16-mixed, 0.4 with --lora).
--limits PROGRAM (target machine_limits) measures the machine's own rates before each run, so that a side that ran in a slow minute
shows.
Writes benchmarks/results/NAME.json (every run with its command) and NAME.md (the table). Standard library only.
"""
import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import task

PEERS = {'plain': [], 'checkpointing': ['--checkpointing'], 'compile': ['--compile']}
SHARE_OF_COMPILED = {'32-true': 0.5, 'bf16-mixed': 0.6}
SHARE_WITH_LORA = 0.4
LORA = ['--lora-r', '16', '--lora-alpha', '32', '--lora-target-modules', 'all-linear']
GIB = 2 ** 30
LEAST_ROUNDS, LEAST_STEPS = 3, 11  # what a record needs; the first step of a run is not counted
MATMUL_REASON = {
    'highest': "the peer multiplies fp32 by its MKL, true fp32 as PyTorch ships it",
    'medium': "the peer may multiply fp32 matrices in bf16, its fastest setting where the machine has bf16, and by oneDNN elsewhere",
}


def arguments(description=__doc__, **defaults):
    """The options; `defaults` are another comparison's."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument('binary', help='the headroom program')
    parser.add_argument('--torch-python', help='interpreter with torch; without it only headroom runs, and needs --memory')
    parser.add_argument('--limits', help='the program machine_limits')
    parser.add_argument('--shared', default=os.path.join(here, '..', '..', 'shared'))
    parser.add_argument('--model', default='smollm2-135m', help='folder of SHARED/data/models')
    parser.add_argument('--precision', default='32-true/highest,32-true/medium,bf16-mixed')
    parser.add_argument('--peers', default='compile,plain,checkpointing')
    parser.add_argument('--memory', help="headroom's budget, or several separated by commas")
    parser.add_argument('--steps', type=int, default=11, help='per run; the first is not counted')
    parser.add_argument('--rounds', type=int, default=LEAST_ROUNDS)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--sequence', type=int, default=512)
    parser.add_argument('--batch', type=int, default=4, help='global batch; the peers take it at once')
    parser.add_argument('--lora', action='store_true', help='both sides train adapters of rank 16 on all linear layers')
    parser.add_argument('--no-headroom', action='store_true', help='run the peers only')
    parser.add_argument('--extra', default='', help="more options for headroom's train")
    parser.add_argument('--work', default='build/benchmark', help='scratch folder, about 4 GiB')
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    parser.add_argument('--name', default='compare_torch')
    parser.set_defaults(**defaults)
    return parser.parse_args()


class Comparison:
    def __init__(self, options):
        self.options = options
        self.binary = os.path.abspath(options.binary)
        self.shared = os.path.abspath(options.shared)
        self.config = os.path.join(self.shared, 'data', 'models', options.model, 'config.json')
        self.work = os.path.abspath(options.work)
        self.runs = []
        self.round = 0

    def shown(self, command):
        """The command without the paths of this machine."""
        text = ' '.join(map(str, command))
        for path, name in ((self.binary, 'headroom'), (self.options.torch_python, 'python'), (self.shared, '../shared'),
                           (self.work, self.options.work)):
            if path:
                text = text.replace(path, name)
        return text

    def call(self, command):
        """Runs a command; returns its standard output and the kernel's count of its peak resident set."""
        began = time.monotonic()
        print(f'$ {self.shown(command)}', flush=True)
        with tempfile.TemporaryFile('w+') as output, tempfile.TemporaryFile('w+') as errors:
            child = subprocess.Popen(command, stdout=output, stderr=errors)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            errors.seek(0)
            if child.returncode:
                sys.exit(f'exit {child.returncode}: {errors.read()[-2000:]}')
            print(f'  {time.monotonic() - began:.0f} s', flush=True)
            return output.read(), usage.ru_maxrss * 1024

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        task.write_random_rows(os.path.join(self.work, 'rows.jsonl'), task.vocabulary_of(self.config),
                               self.options.batch * self.options.steps, self.options.sequence)
        self.make_model()

    def make_model(self):
        self.call([self.binary, 'init', '--config', self.config, '--tokenizer', 'bytes', '--output-dir',
                   os.path.join(self.work, 'model')])

    def run_peer(self, peer, precision):
        model = os.path.dirname(self.config)
        command = [self.options.torch_python, os.path.join(self.shared, 'peers', 'torch_train.py'), model,
                   '--precision', precision.split('/')[0], '--micro-batch', str(self.options.batch), '--seq', str(self.options.sequence),
                   '--steps', str(self.options.steps), '--threads', str(self.options.threads), *PEERS[peer], *(['--lora'] if self.options.lora else [])]
        if '/' in precision:
            command += ['--matmul', precision.split('/')[1]]
        output, _ = self.call(command)
        result = json.loads(output.strip().split('\n')[-1])
        self.keep(f'torch {peer}', precision, command, result['tok_s'], result['peak_rss_bytes'],
                  {'torch': result['torch']})

    def run_headroom(self, budget, precision, matmul):
        # Again each time: on a shared machine a profile of an hour ago says what the machine was then.
        self.call([self.binary, 'profile', '-o', os.path.join(self.work, 'profile.json')])
        out = os.path.join(self.work, 'run')
        shutil.rmtree(out, ignore_errors=True)
        command = [self.binary, 'train', '--model', os.path.join(self.work, 'model'),
                   '--data', os.path.join(self.work, 'rows.jsonl'), '--memory', str(budget), '--output-dir', out,
                   '--precision', precision.split('/')[0], '--global-batch-size', str(self.options.batch), '--max-seq-length', str(self.options.sequence),
                   '--max-steps', str(self.options.steps), '--learning-rate', '1e-4', '--lr-scheduler-type', 'constant',
                   '--threads', str(self.options.threads), '--profile', os.path.join(self.work, 'profile.json'),
                   *(['--matmul-precision', matmul] if matmul else []), *(LORA if self.options.lora else []), *self.options.extra.split()]
        _, peak = self.call(command)
        rows = task.read_steps(out)
        seconds = statistics.median(row['seconds'] for row in rows[1:])
        run = task.read_json(out, 'run.json')
        plan = task.read_json(out, 'plan.json')
        self.keep(f'headroom {self.label(budget)} {matmul}'.strip(), precision, command, self.options.batch * self.options.sequence / seconds, peak,
                  {'budget_bytes': run['budget_bytes'], 'planned_peak_bytes': plan['peak_bytes'],
                   'predicted_step_seconds': plan['predicted_step_seconds'], 'measured_step_seconds': seconds,
                   'micro_batch_size': plan['micro_batch_size'],
                   'techniques': [t['name'] for t in plan['techniques']]})

    @staticmethod
    def label(budget):
        return f'{budget / GIB:.2f}GiB' if isinstance(budget, int) else budget

    def keep(self, side, precision, command, tokens_per_second, peak, more):
        self.runs.append({'round': self.round, 'side': side, 'precision': precision, 'tokens_per_second': round(tokens_per_second, 1),
                          'peak_rss_bytes': peak, 'steps': self.options.steps, 'command': self.shown(command), **self.limits, **more})
        print(f'  {side} {precision}: {tokens_per_second:.1f} tokens/s, {peak / GIB:.2f} GiB', flush=True)

    def budgets(self, precision):
        if self.options.memory:
            return self.options.memory.split(',')
        compiled = [run['peak_rss_bytes'] for run in self.runs
                    if run['side'] == 'torch compile' and run['precision'] == precision]
        if not compiled:
            sys.exit('without the compiled peer headroom needs --memory')
        share = SHARE_WITH_LORA if self.options.lora else SHARE_OF_COMPILED.get(precision.split('/')[0], 0.5)
        return [int(share * compiled[0])]

    def measure_limits(self):
        """The machine's own rates just before a run; they are kept with that run."""
        self.limits = {}
        if self.options.limits:
            self.limits = {'limits': json.loads(task.run([self.options.limits, self.options.threads]).stdout)}

    def measure(self):
        peers = self.options.peers.split(',') if self.options.torch_python else []
        if 'compile' in peers:  # first: headroom's budget comes from it
            peers.sort(key=lambda peer: peer != 'compile')
        for precision in self.options.precision.split(','):
            budgets = None
            for self.round in range(self.options.rounds):
                for peer in peers:
                    self.measure_limits()
                    self.run_peer(peer, precision)
                if self.options.no_headroom:
                    continue
                budgets = budgets or self.budgets(precision)
                matmul = precision.partition('/')[2]
                for budget in budgets:
                    for multiply in ['medium', 'high'] if matmul == 'medium' else [matmul]:
                        self.measure_limits()
                        self.run_headroom(budget, precision, multiply)

    def summary(self):
        """Per precision and side: medians over the rounds, and ratios to each round's fastest and to the compiled peer."""
        rows = []
        for precision in self.options.precision.split(','):
            runs = [run for run in self.runs if run['precision'] == precision]
            sides = {}
            for run in runs:
                sides.setdefault(run['side'], []).append(run)
            peaks = {side: max(run['peak_rss_bytes'] for run in group) for side, group in sides.items()}
            compiled = peaks.get('torch compile')
            fastest = fastest_peers(runs)
            for side, group in sides.items():
                ratios = sorted(run['tokens_per_second'] / fastest[run['round']] for run in group) if fastest else []
                rows.append({'precision': precision, 'side': side,
                             'tokens_per_second': statistics.median(run['tokens_per_second'] for run in group),
                             'peak_rss_bytes': peaks[side],
                             'speed_to_fastest_peer': statistics.median(ratios) if ratios else None,
                             'speed_to_fastest_peer_range': [ratios[0], ratios[-1]] if ratios else None,
                             'peak_to_compiled_peer': peaks[side] / compiled if compiled else None,
                             'gemm_flops_per_second': gemm_rate(precision, group),
                             'predicted_to_measured_step': predicted(group)})
        return rows

    def write(self):
        rows = self.summary()
        machine = {'date': str(datetime.date.today()), 'processor': (task.processors() or ['unknown'])[0], 'cores': os.cpu_count(),
                   'system': f'{platform.system()} {platform.machine()}, {" ".join(platform.libc_ver())}'}
        limits = [run['limits'] for run in self.runs if 'limits' in run]
        if limits:
            machine['limits'] = {name: statistics.median(each[name] for each in limits) for name in limits[0]}
        table = markdown(self.options, machine, rows)
        print(table)
        if self.options.rounds < LEAST_ROUNDS or self.options.steps < LEAST_STEPS:
            print(f'no record: that takes {LEAST_ROUNDS} rounds of {LEAST_STEPS} steps')
            return
        os.makedirs(self.options.results, exist_ok=True)
        base = os.path.join(self.options.results, self.options.name)
        with open(base + '.json', 'w', encoding='utf-8') as out:
            json.dump({'machine': machine, 'model': self.options.model, 'sequence': self.options.sequence, 'global_batch': self.options.batch, 'lora': self.options.lora,
                       'summary': rows, 'runs': self.runs}, out, indent=1)
            out.write('\n')
        with open(base + '.md', 'w', encoding='utf-8') as out:
            out.write(table)


def fastest_peers(runs):
    """The tokens per second of each round's fastest peer."""
    fastest = {}
    for run in runs:
        if run['side'].startswith('torch'):
            fastest[run['round']] = max(fastest.get(run['round'], 0), run['tokens_per_second'])
    return fastest


def gemm_rate(precision, runs):
    """The median of the machine's own rate of products just before these runs, in the dtype that the precision multiplies in."""
    narrow = precision.startswith('bf16') or precision.endswith('medium')
    rates = [run['limits']['bf16_flops_per_second' if narrow else 'f32_flops_per_second'] for run in runs if 'limits' in run]
    return statistics.median(rates) if rates else None


def predicted(runs):
    ratios = [run['predicted_step_seconds'] / run['measured_step_seconds'] for run in runs
              if 'predicted_step_seconds' in run]
    return statistics.median(ratios) if ratios else None


def ratio(value):
    return '' if value is None else f'{value:.2f}'


def markdown(options, machine, rows):
    lora = 'LoRA of rank 16 on all linear layers, ' if options.lora else ''
    limits = f' The machine by itself then: {task.describe_limits(machine["limits"])}.' if 'limits' in machine else ''
    lines = [f'{machine["date"]}. {options.model}, sequence {options.sequence}, global batch {options.batch}, {lora}AdamW with clipping, {options.threads} threads; '
             f'{machine["processor"]}, {machine["cores"]} cores. {options.rounds} alternating rounds, medians of {options.steps - 1} steps; '
             f'the speed-up is the median of the rounds, with the least and the largest.{limits}']
    lines += [f'`{name}`: {MATMUL_REASON[name.partition("/")[2]]}.' for name in options.precision.split(',') if '/' in name]
    lines += ['', '| precision | side | tokens/s | peak RSS, GiB | speed / fastest peer | peak / compiled peer | GEMM rate just before, GFLOP/s | predicted / measured step |',
              '|---|---|---|---|---|---|---|---|']
    for row in rows:
        spread = row['speed_to_fastest_peer_range']
        spread = f' ({spread[0]:.2f} to {spread[1]:.2f})' if spread else ''
        rate = f"{row['gemm_flops_per_second'] / 1e9:.0f}" if row['gemm_flops_per_second'] else ''
        lines.append(f"| {row['precision']} | {row['side']} | {row['tokens_per_second']:.0f} | "
                     f"{row['peak_rss_bytes'] / GIB:.2f} | {ratio(row['speed_to_fastest_peer'])}{spread} | "
                     f"{ratio(row['peak_to_compiled_peer'])} | {rate} | {ratio(row['predicted_to_measured_step'])} |")
    return '\n'.join(lines) + '\n'


def compare(options, kind=Comparison):
    if not options.torch_python and not options.memory:
        sys.exit('without --torch-python the budget must be given with --memory')
    comparison = kind(options)
    if not options.no_headroom:
        comparison.prepare()
    comparison.measure()
    comparison.write()


if __name__ == '__main__':
    compare(arguments())
