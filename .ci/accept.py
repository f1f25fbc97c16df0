#!/usr/bin/env python3
"""Runs the acceptance scripts of SHARED/accept on a headroom binary and sums up their results.

Usage: accept.py HEADROOM_BINARY SHARED_DIR
Each script prints "N passed, N failed"; one that ends without such a line counts as one failure. Scripts whose command
the binary does not have are skipped. The last line is the sum. Standard library only.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

COUNTS = re.compile(r'^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$', re.M)
BUDGET_FRACTIONS = (0.0, 0.5, 1.0)  # of the way from the least budget to plenty
SECONDS_PER_SCRIPT = 900


class Acceptance:
    def __init__(self, binary, shared):
        self.binary = os.path.abspath(binary)
        self.shared = os.path.abspath(shared)
        self.total = [0, 0, 0]

    def script(self, name, *arguments):
        """Runs accept/NAME with the binary and the arguments; adds its counts."""
        command = [sys.executable, os.path.join(self.shared, 'accept', name), self.binary, *map(str, arguments)]
        shown = ' '.join([name, *(str(a).replace(self.shared, '../shared') for a in arguments)])
        began = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_PER_SCRIPT, check=False)
            output, code = done.stdout, done.returncode
            if code:
                output += done.stderr[-2000:]
        except subprocess.TimeoutExpired as late:
            output, code = (late.stdout or b'').decode(errors='replace'), 'timeout'
        found = COUNTS.findall(output)
        counts = [int(c or 0) for c in found[-1]] if found else [0, 1, 0]
        if code and not counts[1]:
            counts[1] = 1
        self.total = [a + b for a, b in zip(self.total, counts)]
        print(f'{shown}: {counts[0]} ok, {counts[1]} bad, {counts[2]} left out, {time.monotonic() - began:.0f} s')
        if counts[1]:
            print('\n'.join('    ' + line for line in output.split('\n') if 'FAIL' in line or not found)[-3000:])
        sys.stdout.flush()

    def has(self, command):
        known = subprocess.run([self.binary, command, '--help'], capture_output=True, check=False).returncode == 0
        if not known:
            print(f'skipped: the program has no command {command}')
            self.total[2] += 1
        return known

    def at(self, *parts):
        return os.path.join(self.shared, *parts)

    def golden(self):
        self.script('golden.py')
        self.script('golden.py', '--extra=--technique recompute=on')
        self.script('golden.py', '--extra=--micro-batch-size 1')
        self.script('golden.py', '--extra=--technique recompute=on --micro-batch-size 3 --technique chunked-loss=on')
        for case in sorted(os.listdir(self.at('accept', 'golden'))):
            self.golden_at_budgets(case)

    def golden_at_budgets(self, case):
        """golden.py takes one budget for all of its cases; each case has its own least budget."""
        folder = self.at('accept', 'golden', case)
        with open(os.path.join(folder, 'case.json'), encoding='utf-8') as text:
            options = json.load(text)
        try:
            least, plenty = self.budgets(folder, options)
        except (ValueError, KeyError, subprocess.SubprocessError) as why:
            print(f'golden.py {case}: no budgets: {why}')
            self.total[1] += 1
            return
        with tempfile.TemporaryDirectory() as cases:
            os.symlink(folder, os.path.join(cases, case))
            for fraction in BUDGET_FRACTIONS:
                self.script('golden.py', cases, '--memory', int(least + fraction * (plenty - least)))

    def budgets(self, folder, options):
        """The least budget for a golden case, and the peak with plenty."""
        command = [self.binary, 'plan', '--json', '--memory', '1GiB', '--model', os.path.join(folder, 'model'),
                   '--data', os.path.join(folder, 'data.jsonl'), '--precision', '32-true',
                   '--global-batch-size', str(options['global_batch_size']),
                   '--max-seq-length', str(options['max_seq_length']), '--max-grad-norm', str(options['max_grad_norm'])]
        plan = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
        return plan['minimum_bytes'], plan['peak_bytes']

    def budget(self):
        stories = (self.at('data', 'stories260K'), self.at('data', 'text', 'tinyshakespeare.txt'))
        extra = '--extra=--global-batch-size 8 --max-seq-length 256'
        self.script('budget.py', *stories, extra)
        self.script('budget.py', *stories, '--bitwise', extra)

    def run(self):
        if self.has('tokenize'):
            tokenizers = ('gpt2', 'qwen2.5', 'llama2', 'gpt-neox-20b', 'bert-base-uncased')
            self.script('tokenizer.py', *(self.at('data', 'tokenizers', name) for name in tokenizers))
        if self.has('generate'):
            self.script('generate.py', self.at('data', 'stories260K'))
        if self.has('train') and self.has('evaluate'):
            self.golden()
        if self.has('plan'):
            self.budget()
        if self.has('doctor'):
            self.script('doctor_messages.py', self.at('data', 'oom_messages.jsonl'))
        passed, failed, skipped = self.total
        print(f'{passed} passed, {failed} failed, {skipped} skipped')
        return 1 if failed or not passed else 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    # budget.py writes its runs into the current directory, which must not be a tmpfs.
    os.makedirs('build/ci', exist_ok=True)
    acceptance = Acceptance(*sys.argv[1:])
    os.chdir('build/ci')
    sys.exit(acceptance.run())


if __name__ == '__main__':
    main()
