#!/usr/bin/env python3
"""How long planning takes and what memory: `headroom plan` from its start to its end.

Usage: planning.py HEADROOM_BINARY [--shared DIR] [--rounds 3] [--limit 600] [--results DIR]
Models: a published one of each size, one of 10^12 weights, and one of 10,000 layers, written here. Each is planned for
plenty of memory, where every choice is open, for its least budget, and, where that is said, for a GPU with budgets of
all three tiers. Seconds are the median over the rounds, of the clock and of the processor (on a busy machine the clock
says little); a plan that takes more of the processor than the limit is ended and said so; the resident set is the largest that the kernel counted. Writes benchmarks/results/planning.md. Standard
library only.
"""
import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import task

GIB = 1 << 30
# (seconds, bytes of the resident set) that the project promises
PROMISES = {'smollm2-135m': 0.2, 'mistral-7b': 2, 'llama-3.1-70b': 5}
RESIDENT = 512 << 20


def llama(layers, hidden, intermediate, heads, vocabulary):
    return {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'vocab_size': vocabulary, 'hidden_size': hidden,
            'intermediate_size': intermediate, 'num_hidden_layers': layers, 'num_attention_heads': heads,
            'num_key_value_heads': max(1, heads // 8), 'max_position_embeddings': 8192, 'rms_norm_eps': 1e-5,
            'rope_theta': 500000.0, 'hidden_act': 'silu', 'tie_word_embeddings': False, 'torch_dtype': 'bfloat16'}


WRITTEN = {'llama of 10^12 weights': llama(128, 24576, 86016, 192, 128256),
           'llama of 10,000 layers': llama(10000, 64, 128, 2, 512)}
PROFILE = ['--profile', 'cpu-avx512']  # a machine's own has more points, or fewer
TIERS = ['--device', 'null', '--profile', 'H100-80GB', '--host-memory', str(1 << 52), '--precision', 'bf16-mixed']


class Planning:
    def __init__(self, options):
        self.options = options
        self.lines = []

    def call(self, arguments, out):
        """(exit code, seconds of the clock, what the kernel counted)"""
        limit = self.options.limit
        begin = time.monotonic()
        child = subprocess.Popen([self.options.binary, 'plan', '--json', '--threads', '2'] + arguments, stdout=out,
                                 stderr=subprocess.DEVNULL,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)))
        _, status, use = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 3, -signal.SIGXCPU):
            sys.exit(f'exit {child.returncode} of plan {arguments}')
        return child.returncode, time.monotonic() - begin, use

    def measure(self, arguments):
        """(plan, None where the limit ended it; median seconds of the clock, of the processor; largest resident set)"""
        clock, processor, resident, plan = [], [], [], None
        for _ in range(self.options.rounds):
            with tempfile.TemporaryFile('w+') as out:
                code, seconds, use = self.call(arguments, out)
                clock.append(seconds)
                processor.append(use.ru_utime + use.ru_stime)
                resident.append(use.ru_maxrss * 1024)
                if code < 0:
                    break
                out.seek(0)
                plan = json.load(out)
        return plan, statistics.median(clock), statistics.median(processor), max(resident)

    def add(self, name, what, arguments):
        plan, clock, processor, resident = self.measure(arguments)
        promise = PROMISES.get(name)
        kept = 'no' if not plan or resident > RESIDENT or (promise and processor > promise) else 'yes'
        fits = 'ended' if not plan else 'fits' if plan['feasible'] else 'does not fit'
        booked = f'{plan["process_bytes"] / 2**20:.0f}' if plan else '-'
        self.lines.append(f'| {name} | {what}, {fits} | {clock:.2f} | {processor:.2f} | {f"{promise} s" if promise else "-"} | '
                          f'{resident / 2**20:.0f} | {booked} | {kept} |')
        print(self.lines[-1], flush=True)
        return plan

    def model(self, name, path):
        of_model = ['--model', path] + PROFILE + ['--memory']
        plan = self.add(name, 'plenty of memory', of_model + [str(1 << 52)])
        if plan:
            self.add(name, 'its least budget', of_model + [str(plan['minimum_bytes'])])

    def tiers(self, name, path, disk):
        tiers = TIERS + ['--disk-memory', f'{disk}:{1 << 52}']
        self.add(name, 'GPU of 80 GiB, host and disk', ['--model', path, '--memory', str(80 * GIB)] + tiers)

    def run(self):
        models = os.path.join(self.options.shared, 'data', 'models')
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(models, name) for name in PROMISES}
            for name, config in WRITTEN.items():
                paths[name] = os.path.join(folder, f'{len(paths)}.json')
                with open(paths[name], 'w', encoding='utf-8') as out:
                    json.dump(config, out)
            for name, path in paths.items():
                self.model(name, path)
                if name in ('llama-3.1-70b', 'llama of 10^12 weights'):
                    self.tiers(name, path, folder)

    def write(self):
        with open(os.path.join(self.options.results, 'planning.md'), 'w', encoding='utf-8') as out:
            out.write(f'{task.day_and_machine()}. Medians of {self.options.rounds} rounds, profile `{PROFILE[1]}`, on the GPU '
                      f'`{TIERS[3]}`; `benchmarks/planning.py` says how. '
                      f'Machine load at the end: {os.getloadavg()[0]:.1f}.\n\n'
                      '| model | asked for | seconds | of the processor | promised | resident set, MiB | C, MiB | kept |\n'
                      '|---|---|---|---|---|---|---|---|\n' + '\n'.join(self.lines) + '\n\n'
                      'Promised of the resident set: 512 MiB. C is what the plan books outside the arena; planning runs before '
                      'the arena is reserved, in the process that trains.\n')


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument('binary')
    parser.add_argument('--shared', default=os.path.join(here, '..', '..', 'shared'))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--limit', type=int, default=600, help='seconds of the processor for a plan')
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    return parser.parse_args()


def main():
    planning = Planning(arguments())
    planning.run()
    planning.write()


if __name__ == '__main__':
    main()
