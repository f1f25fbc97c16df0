#!/usr/bin/env python3
"""headroom and PyTorch on one GPU in alternating rounds: full fine-tuning at one shape, both sides resident at the same time.

Usage: alternate.py HEADROOM --torch-python PYTHON [--shared ../shared] [--model M] [--sequence 1024] [--batch 16] [--precision P]
                    [--variant plain|compile|checkpointing] [--rounds 3] [--steps 12] [--profile FILE]
A round is one of PyTorch (torch_peer.py, which stays in memory between its rounds), one of headroom with the memory that PyTorch takes, and one with
0.7 of it. Figures are medians of rounds, a round's being the median of its steps after the second. Writes benchmarks/results/gpu_alternate.{json,md}.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import gpu_run

HERE = os.path.dirname(os.path.abspath(__file__))


class Peer:
    """PyTorch, whose first steps compile and do not count."""

    def __init__(self, options, folder):
        self.process = subprocess.Popen(
            [options.torch_python, os.path.join(HERE, 'torch_peer.py'), folder, '--sequence', str(options.sequence), '--batch', str(options.batch),
             '--precision', options.precision, '--steps', str(options.steps), '--rounds', *gpu_run.TORCH_VARIANTS[options.variant]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f'PyTorch ended with {self.process.wait()}')
        return json.loads(line)

    def round(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()
        return self.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def median_of(rounds, figure):
    return statistics.median(row[figure] for row in rounds)


def rows_of(options, peers, sides):
    common = {'model': options.model, 'sequence': options.sequence, 'batch': options.batch, 'precision': options.precision}
    torch = median_of(peers, 'tokens_per_second')
    rows = [{**common, 'side': f"torch {peers[0]['torch']} {options.variant}", 'tokens_per_second': torch,
             'rounds': [row['tokens_per_second'] for row in peers], 'device_peak_bytes': max(row['device_peak_bytes'] for row in peers)}]
    for name, runs in sides.items():
        failed = [run for run in runs if 'failed' in run]
        if failed:
            rows.append({**common, 'side': f'headroom, {name}', 'failed': failed[0]['failed']})
            continue
        speed = median_of(runs, 'tokens_per_second')
        rows.append({**common, 'side': f'headroom, {name}', 'tokens_per_second': speed, 'rounds': [run['tokens_per_second'] for run in runs],
                     'device_peak_bytes': max(run['device_peak_bytes'] for run in runs), 'speed_ratio': speed / torch,
                     'memory_ratio': max(run['device_peak_bytes'] for run in runs) / rows[0]['device_peak_bytes'],
                     'step_seconds': median_of(runs, 'step_seconds'), 'predicted_step_seconds': runs[0]['predicted_step_seconds'],
                     'techniques': runs[0]['techniques'], 'command': runs[0]['command']})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--torch-python', required=True)
    parser.add_argument('--shared', default=os.path.join(HERE, '..', '..', '..', 'shared'))
    parser.add_argument('--model', default='qwen2.5-0.5b')
    parser.add_argument('--sequence', type=int, default=1024)
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--precision', choices=['bf16-true', 'bf16-mixed'], default='bf16-true')
    parser.add_argument('--variant', choices=list(gpu_run.TORCH_VARIANTS), default='compile')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--profile')
    parser.add_argument('--work', default='build/gpu')
    options = parser.parse_args()
    folder = os.path.join(options.shared, 'data', 'models', options.model)
    peer = Peer(options, folder)
    path, data = gpu_run.fresh_model(options.binary, os.path.join(folder, 'config.json'), options.work, options.sequence, options.batch * 8)
    extra = ['--precision', options.precision, *(['--profile', options.profile] if options.profile else [])]
    peers, sides = [], {'as much': [], '0.7 of it': []}
    for _ in range(options.rounds):
        peers.append(peer.round())
        for name, share in zip(sides, (1.0, 0.7)):
            budget = int(share * peers[0]['device_peak_bytes'])
            sides[name].append(gpu_run.train(options.binary, path, data, os.path.join(options.work, 'run'), budget, options.sequence, options.batch,
                                             options.steps, extra=extra, saves=False))
    peer.end()
    gpu_run.write_results('alternate', rows_of(options, peers, sides),
                          ['model', 'sequence', 'batch', 'precision', 'side', 'tokens_per_second', 'device_peak_bytes', 'speed_ratio', 'memory_ratio',
                           'step_seconds', 'predicted_step_seconds', 'failed'], 'Full fine-tuning on one GPU, headroom and PyTorch in alternating rounds')


if __name__ == '__main__':
    main()
