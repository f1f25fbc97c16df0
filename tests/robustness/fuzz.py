#!/usr/bin/env python3
"""Fuzzes every parser for a given CPU time each, in turns, and can be continued.

Usage: fuzz.py BUILD [--minutes 60] [--turn 5] [--jobs 1] [--only NAME,...] [--work DIR] [--timeout 60]
BUILD is a folder of `cmake --preset fuzz` with its libFuzzer programs built. The fuzzer with the least CPU time is next, until
each has --minutes. DIR keeps the corpora, logs, crashing inputs and minutes.json (CPU seconds and runs of each), so that
minutes add up over several calls; Ctrl-C ends the current turns and keeps what they counted. Small files of tests/data_files,
and of ../shared/data if it exists, are the first inputs. Prints a table and `N passed, N failed`: a fuzzer fails when it found
a crash, a leak or a slow input. Standard library only.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data_files'))
from data_files import DATA, SHARED  # noqa: E402

LARGEST_INPUT = 1 << 16


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--minutes', type=float, default=60, help='of CPU for each fuzzer')
    parser.add_argument('--turn', type=float, default=5, help='minutes of CPU before another fuzzer has its turn')
    parser.add_argument('--jobs', type=int, default=1, help='fuzzers at a time')
    parser.add_argument('--only', default='', help='names, separated by commas')
    parser.add_argument('--work', default='build/fuzzing')
    parser.add_argument('--timeout', type=int, default=60,
                        help='seconds that an input may take, those in which the fuzzer is stopped counted')
    return parser.parse_args()


def fuzzers_of(build, only):
    """Programs by name."""
    found = {}
    for folder, _, files in os.walk(os.path.join(build, 'tests')):
        for name in files:
            path = os.path.join(folder, name)
            if name.endswith('_fuzz') and os.access(path, os.X_OK) and (not only or name in only):
                found[name] = os.path.abspath(path)
    return found


def copy_seeds(folder):
    os.makedirs(folder, exist_ok=True)
    for root in (SHARED / 'data', DATA):
        for base, _, files in os.walk(root):
            for name in files:
                path = os.path.join(base, name)
                if os.path.getsize(path) <= LARGEST_INPUT:
                    shutil.copyfile(path, os.path.join(folder, 'data_' + os.path.relpath(path, root).replace(os.sep, '_')))


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Turn:
    """One run of one fuzzer."""

    def __init__(self, name, program, work, timeout):
        self.name = name
        self.log = os.path.join(work, 'logs', name + '.log')
        corpus = os.path.join(work, 'corpora', name)
        artifacts = os.path.join(work, 'crashes', name + '-')
        os.makedirs(corpus, exist_ok=True)
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(
                [program, corpus, os.path.join(work, 'seeds'), f'-artifact_prefix={artifacts}', '-rss_limit_mb=4096',
                 f'-max_len={LARGEST_INPUT}', '-print_final_stats=1', f'-timeout={timeout}'],
                stdout=log, stderr=log, cwd=work)
        self.seconds = 0.0

    def look(self):
        """Whether it still runs; counts its CPU time."""
        if self.process.poll() is not None:
            return False
        self.seconds = cpu_seconds(self.process.pid)
        return True

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def runs(self):
        with open(self.log, errors='replace') as file:
            counts = re.findall(r'number_of_executed_units: (\d+)', file.read())
        return int(counts[-1]) if counts else 0


class Campaign:
    def __init__(self, options):
        self.options = options
        self.work = os.path.abspath(options.work)
        self.programs = fuzzers_of(options.build, set(filter(None, options.only.split(','))))
        if not self.programs:
            sys.exit(f'{options.build} holds no fuzzer: cmake --preset fuzz && cmake --build build/fuzz')
        for folder in ('logs', 'crashes', 'corpora'):
            os.makedirs(os.path.join(self.work, folder), exist_ok=True)
        copy_seeds(os.path.join(self.work, 'seeds'))
        self.record = os.path.join(self.work, 'minutes.json')
        self.done = {}
        if os.path.exists(self.record):
            with open(self.record) as file:
                self.done = json.load(file)

    def entry(self, name):
        return self.done.setdefault(name, {'seconds': 0.0, 'runs': 0, 'found': 0})

    def next_name(self, running):
        waiting = [name for name in self.programs if name not in running and not self.entry(name)['found']
                   and self.entry(name)['seconds'] < 60 * self.options.minutes]
        return min(waiting, key=lambda name: self.entry(name)['seconds'], default=None)

    def finish(self, turn, stopped):
        entry = self.entry(turn.name)
        entry['seconds'] += turn.seconds
        entry['runs'] += turn.runs()
        if not stopped:
            entry['found'] += 1
            print(f'{turn.name}: ended by itself, see {turn.log}', flush=True)
        with open(self.record + '.part', 'w') as file:
            json.dump(self.done, file, indent=1)
        os.replace(self.record + '.part', self.record)

    def run(self):
        turns = {}
        try:
            while True:
                while len(turns) < self.options.jobs and (name := self.next_name(turns)):
                    turns[name] = Turn(name, self.programs[name], self.work, self.options.timeout)
                if not turns:
                    return
                time.sleep(1)
                for turn in list(turns.values()):
                    alive = turn.look()
                    if alive and turn.seconds < 60 * self.options.turn:
                        continue
                    if alive:
                        turn.stop()
                    self.finish(turns.pop(turn.name), alive)
        except KeyboardInterrupt:
            for turn in turns.values():
                alive = turn.look()
                if alive:
                    turn.stop()
                self.finish(turn, alive)

    def report(self):
        print('| fuzzer | minutes of CPU | runs | found |\n|---|---:|---:|---:|')
        for name in sorted(self.programs):
            entry = self.entry(name)
            print(f"| `{name}` | {entry['seconds'] / 60:.0f} | {entry['runs']:,} | {entry['found']} |")
        failed = sum(1 for name in self.programs if self.entry(name)['found'])
        print(f'{len(self.programs) - failed} passed, {failed} failed')
        return failed


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    campaign = Campaign(parse_arguments())
    campaign.run()
    sys.exit(1 if campaign.report() else 0)


if __name__ == '__main__':
    main()
