#!/usr/bin/env python3
"""Checks that a run on a GPU stays within its budget of device memory, as counted by the driver.

Usage: budget.py HEADROOM MODEL_DIR DATA [--device cuda:0] [--fractions 1.0,0.5,0.0] [--extra "ARGS"]
Asks `plan` for the least budget and for the peak without a limit, trains 3 steps with evaluation and save at budgets between
them, and checks: exit code 0; measured arena and scratch file equal the planned ones; the driver's peak for the process (NVML,
every 5 ms) is at most the planned peak, and less than it by at most 5 % of the memory outside the arena plus the 32 MiB that
CUDA graphs may take, of which a small model takes little; memory outside the arena is at most 700 MiB; resident host memory is
at most the host tier's plan; losses agree at all budgets; one byte less than the least budget is refused with exit code 3.
Prints N passed, N failed; skips without a device.
"""
import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'benchmarks', 'gpu'))
import gpu_run  # noqa: E402, which finds the folder above it
import task  # noqa: E402

MOST_OUTSIDE = 700 * 2 ** 20
GRAPHS = 32 * 2 ** 20


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, []

    def that(self, name, holds, figure=''):
        print(('ok   ' if holds else 'FAIL ') + name, figure)
        if holds:
            self.passed += 1
        else:
            self.failed.append(name)


def plan(options, memory):
    done = subprocess.run([options.binary, 'plan', '--json', '--memory', str(memory), *options.base], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}


def check_run(options, checks, budget, losses):
    out = os.path.join(options.work, 'run')
    shutil.rmtree(out, ignore_errors=True)
    status, errors, device, resident = gpu_run.watched([options.binary, 'train', '--memory', budget, '--output-dir', out, '--max-steps', 3, *options.base])
    checks.that(f'{budget}: exit 0', status == 0, errors[-200:] if status else '')
    if status:
        return
    planned, run = task.read_json(out, 'plan.json'), task.read_json(out, 'run.json')
    losses.append([row['loss'] for row in task.read_steps(out)])
    outside = planned['peak_bytes'] - planned['arena_bytes']
    checks.that(f'{budget}: arena planned == measured', run['arena_planned_bytes'] == run['arena_measured_bytes'], run['arena_measured_bytes'])
    checks.that(f'{budget}: disk planned == measured', run['disk_planned_bytes'] == run['disk_measured_bytes'], run['disk_measured_bytes'])
    checks.that(f'{budget}: device <= planned <= budget', device <= planned['peak_bytes'] <= budget, f"{device} {planned['peak_bytes']}")
    checks.that(f'{budget}: within 5 % of what lies outside, and graphs', planned['peak_bytes'] - device <= 0.05 * outside + GRAPHS, planned['peak_bytes'] - device)
    checks.that(f'{budget}: outside at most 700 MiB', outside <= MOST_OUTSIDE, outside)
    counted = run['device_outside_arena_bytes']
    if counted is None:
        print(f'{budget}: the driver does not tell headroom what lies outside')
    else:
        checks.that(f'{budget}: headroom counts at most what is planned outside', 0 < counted <= outside, counted)
    checks.that(f'{budget}: host within its tier', resident <= planned['tiers']['host']['peak_bytes'], resident)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('model')
    parser.add_argument('data')
    parser.add_argument('--device', default='cuda:0')
    parser.add_argument('--fractions', default='1.0,0.5,0.0')
    parser.add_argument('--extra', default='')
    options = parser.parse_args()
    if shutil.which('nvidia-smi') is None:
        print('no device: skipped\n0 passed, 0 failed, 1 skipped')
        return
    options.base = ['--model', options.model, '--data', options.data, '--device', options.device, '--eval-data', options.data, '--eval-max-batches', '4',
                    '--lr-scheduler-type', 'constant', *shlex.split(options.extra)]
    checks, losses = Checks(), []
    with tempfile.TemporaryDirectory(prefix='headroom-gpu-', dir='.') as options.work:
        status, plenty = plan(options, '60GiB')
        checks.that('plan with plenty', status == 0)
        most, least = plenty['peak_bytes'], plenty['minimum_bytes']
        for fraction in map(float, options.fractions.split(',')):
            check_run(options, checks, int(least + fraction * (most - least)), losses)
        checks.that('losses agree', all(abs(a - b) <= 1e-5 * abs(a) for run in losses[1:] for a, b in zip(losses[0], run)), losses[:1])
        checks.that('one byte less is refused', plan(options, least - 1)[0] == 3)
    print(f'{checks.passed} passed, {len(checks.failed)} failed')
    sys.exit(1 if checks.failed else 0)


if __name__ == '__main__':
    main()
