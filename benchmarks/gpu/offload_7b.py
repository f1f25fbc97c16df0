#!/usr/bin/env python3
"""Full fine-tuning of a 7B model inside 24 GiB of device memory, the rest of its state in host memory.

Usage: offload_7b.py HEADROOM [--shared ../shared] [--memory 24GiB] [--host-memory 110GiB] [--batch 16] [--sequence 1024]
States tokens per second, device and host bytes, and predicted against measured step time. Writes benchmarks/results/gpu_offload_7b.{json,md}.
"""
import argparse
import os

import gpu_run

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--shared', default=os.path.join(HERE, '..', '..', '..', 'shared'))
    parser.add_argument('--model', default='llama-2-7b')
    parser.add_argument('--memory', default='24GiB')
    parser.add_argument('--host-memory', default='110GiB')
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--sequence', type=int, default=1024)
    parser.add_argument('--work', default='build/gpu')
    options = parser.parse_args()
    config = os.path.join(options.shared, 'data', 'models', options.model, 'config.json')
    path, data = gpu_run.fresh_model(options.binary, config, options.work, options.sequence, options.batch * 6)
    run = gpu_run.train(options.binary, path, data, os.path.join(options.work, 'run'), options.memory, options.sequence, options.batch, 6, saves=False,
                        extra=['--precision', 'bf16-mixed', '--host-memory', options.host_memory])
    if 'failed' not in run:
        run['prediction_error'] = run['predicted_step_seconds'] / run['step_seconds'] - 1
    gpu_run.write_results('offload_7b', [{'model': options.model, **run}],
                          ['model', 'tokens_per_second', 'device_peak_bytes', 'resident_bytes', 'predicted_step_seconds', 'step_seconds', 'prediction_error', 'failed'],
                          f'A 7B model in {options.memory} of device memory')


if __name__ == '__main__':
    main()
