#!/usr/bin/env python3
"""headroom and PyTorch on one GPU: full fine-tuning of Qwen2.5-0.5B, 1.5B and Llama-3.2-3B shapes at sequence 1024 and 4096, bf16.

Usage: compare_torch.py HEADROOM --torch-python PYTHON [--shared ../shared] [--models a,b] [--sequences 1024,4096] [--precisions a,b] [--batch 8]
Both sides keep what the precision says: bf16-mixed weights in fp32, bf16-true weights in bf16 (headroom's states are fp32, PyTorch's then bf16).
Three comparisons per model, sequence and precision: headroom with 0.7 of what the fastest PyTorch variant took, headroom with the memory that PyTorch
with checkpointing took, and headroom with no limit. The fastest PyTorch variant counts for speed. What runs out of memory or does not fit is recorded
as such. Writes benchmarks/results/gpu_compare_torch.{json,md}, again after each model, sequence and precision.
"""
import argparse
import itertools
import json
import os
import subprocess

import gpu_run

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = 'qwen2.5-0.5b,qwen2.5-1.5b,llama-3.2-3b'


def run_peer(python, folder, sequence, batch, precision, variant):
    command = [python, os.path.join(HERE, 'torch_peer.py'), folder, '--sequence', str(sequence), '--batch', str(batch), '--precision', precision,
               *gpu_run.TORCH_VARIANTS[variant]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {'failed': 'out of memory' if 'out of memory' in done.stderr else ' '.join(done.stderr[-300:].split())}
    return json.loads(done.stdout.strip().split('\n')[-1])


def compare(options, model, sequence, precision):
    key = {'model': model, 'sequence': sequence, 'precision': precision}
    folder = os.path.join(options.shared, 'data', 'models', model)
    peers = {variant: run_peer(options.torch_python, folder, sequence, options.batch, precision, variant) for variant in gpu_run.TORCH_VARIANTS}
    rows = [{**key, 'side': f'torch {name}', **peer} for name, peer in peers.items()]
    working = [peer for peer in peers.values() if 'failed' not in peer]
    fastest = max(working, key=lambda peer: peer['tokens_per_second']) if working else None
    budgets = {'no limit': None}
    if fastest:
        budgets['0.7 of the fastest'] = int(0.7 * fastest['device_peak_bytes'])
    if 'failed' not in peers['checkpointing']:
        budgets['as checkpointing'] = peers['checkpointing']['device_peak_bytes']
    path, data = gpu_run.fresh_model(options.binary, os.path.join(folder, 'config.json'), options.work, sequence, options.batch * 8)
    for name, budget in budgets.items():
        run = gpu_run.train(options.binary, path, data, os.path.join(options.work, 'run'), budget, sequence, options.batch, 8,
                            extra=['--precision', precision, *options.extra.split()])
        against = peers['checkpointing'] if name == 'as checkpointing' else fastest
        both = against and 'failed' not in run
        rows.append({**key, 'side': f'headroom, {name}', **run,
                     'speed_ratio': run['tokens_per_second'] / against['tokens_per_second'] if both else None,
                     'memory_ratio': run['device_peak_bytes'] / against['device_peak_bytes'] if both else None})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--torch-python', required=True)
    parser.add_argument('--shared', default=os.path.join(HERE, '..', '..', '..', 'shared'))
    parser.add_argument('--models', default=MODELS)
    parser.add_argument('--sequences', default='1024,4096')
    parser.add_argument('--precisions', default='bf16-mixed,bf16-true')
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--work', default='build/gpu')
    parser.add_argument('--extra', default='', help="more options for headroom's train")
    options = parser.parse_args()
    rows = []
    for model, sequence, precision in itertools.product(options.models.split(','), map(int, options.sequences.split(',')), options.precisions.split(',')):
        rows += compare(options, model, sequence, precision)
        gpu_run.write_results('compare_torch', rows, ['model', 'sequence', 'precision', 'side', 'tokens_per_second', 'device_peak_bytes', 'speed_ratio',
                                                      'memory_ratio', 'failed'], 'Full fine-tuning on one GPU, headroom and PyTorch')


if __name__ == '__main__':
    main()
