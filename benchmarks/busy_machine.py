#!/usr/bin/env python3
"""The program's own team of threads beside libgomp's, alone and beside busy neighbours.

Usage: busy_machine.py HEADROOM_BINARY [--neighbours 0,2] [--rounds 5] [--steps 6]
The demo's model trains for some steps, in turns with the own team and with libgomp's at its usual spin (GOMP_SPINCOUNT=300000, which also
selects it), while N processes do nothing but count. What others took of the CPUs is measured too, as this machine may not be ours
alone. Writes benchmarks/results/busy_machine.md. Standard library only.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys

import task

SIDES = {'own team': {}, 'libgomp': {'GOMP_SPINCOUNT': '300000'}}
NEIGHBOUR = [sys.executable, '-c', 'while True: pass']


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument('binary')
    parser.add_argument('--config', default=os.path.join(here, '..', 'examples', 'fortunes', 'config.json'))
    parser.add_argument('--neighbours', default='0,2')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=6)
    parser.add_argument('--work', default='build/benchmark')
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    return parser.parse_args()


def busy_ticks():
    """Of all CPUs together, and the ticks that went by."""
    with open('/proc/stat', encoding='ascii') as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


class Busy:
    def __init__(self, options):
        self.options = options
        self.work = os.path.abspath(options.work)
        self.seen = {}

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        task.write_random_rows(os.path.join(self.work, 'rows.jsonl'), 256, 16 * self.options.steps, 256)
        task.run([self.options.binary, 'init', '--config', self.options.config, '--tokenizer', 'bytes', '--output-dir',
                  os.path.join(self.work, 'model')])

    def measure(self, side):
        """(tokens per second in the mean, share of the CPUs that the run had, share that others had)"""
        out = os.path.join(self.work, 'run')
        shutil.rmtree(out, ignore_errors=True)
        before, ticks = busy_ticks()
        child = subprocess.Popen(
            [self.options.binary, 'train', '--model', os.path.join(self.work, 'model'), '--data', os.path.join(self.work, 'rows.jsonl'),
             '--memory', '160MiB', '--profile', 'cpu-avx2', '--max-seq-length', '256', '--global-batch-size', '16', '--max-steps',
             str(self.options.steps), '--output-dir', out, '--quiet'], env={**os.environ, **SIDES[side]})
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f'exit {child.returncode}')
        busy, all_ticks = (now - then for now, then in zip(busy_ticks(), (before, ticks)))
        own = (usage.ru_utime + usage.ru_stime) * os.sysconf('SC_CLK_TCK')
        seconds = [row['seconds'] for row in task.read_steps(out)][1:]
        return 16 * 256 * len(seconds) / sum(seconds), own / all_ticks, max(0.0, busy - own) / all_ticks

    def all(self):
        self.prepare()
        for count in map(int, self.options.neighbours.split(',')):
            neighbours = [subprocess.Popen(NEIGHBOUR) for _ in range(count)]
            try:
                for number in range(self.options.rounds):
                    for side in list(SIDES)[:: 1 if number % 2 == 0 else -1]:
                        result = self.measure(side)
                        self.seen.setdefault((count, side), []).append(result)
                        print(f'{count} neighbours, {side}: {result[0]:.0f} tokens/s, {result[1]:.0%} of the CPUs, others {result[2]:.0%}', flush=True)
            finally:
                for neighbour in neighbours:
                    neighbour.kill()
                    neighbour.wait()
        self.write()

    def write(self):
        lines = [f'{task.day_and_machine()}. The demo\'s model, 16 sequences of 256 tokens per step, {self.options.steps - 1} steps a run, '
                 f'{self.options.rounds} alternating rounds; medians, and the range in brackets. `benchmarks/busy_machine.py` says how.', '',
                 '| neighbours | team | tokens/s | of the CPUs, this run | others |', '|---|---|---|---|---|']
        for (count, side), results in self.seen.items():
            speed, own, others = zip(*results)
            lines.append(f'| {count} | {side} | {statistics.median(speed):.0f} ({min(speed):.0f} to {max(speed):.0f}) | '
                         f'{statistics.median(own):.0%} | {statistics.median(others):.0%} |')
        with open(os.path.join(self.options.results, 'busy_machine.md'), 'w', encoding='utf-8') as out:
            out.write('\n'.join(lines) + '\n')
        print('\n'.join(lines))


if __name__ == '__main__':
    Busy(arguments()).all()
