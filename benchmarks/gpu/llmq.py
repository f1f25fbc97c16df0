#!/usr/bin/env python3
"""headroom beside LLMQ's published rates of full fine-tuning on one H100 (sequence 1024, bf16), with no memory option given.

Usage: llmq.py HEADROOM [--shared ../shared] [--batch 32] [--sequence 1024] [--models a,b] [--precisions a,b]
The published tokens per second: 0.5B 149,000, 1.5B 59,000, 3B 31,000, 7B 13,900. bf16-true keeps weights in bf16, bf16-mixed in fp32.
Writes benchmarks/results/gpu_llmq.{json,md}.
"""
import argparse
import itertools
import os

import gpu_run

HERE = os.path.dirname(os.path.abspath(__file__))
PUBLISHED = {'qwen2.5-0.5b': 149_000, 'qwen2.5-1.5b': 59_000, 'llama-3.2-3b': 31_000, 'llama-2-7b': 13_900}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--shared', default=os.path.join(HERE, '..', '..', '..', 'shared'))
    parser.add_argument('--models', default=','.join(PUBLISHED))
    parser.add_argument('--precisions', default='bf16-true,bf16-mixed')
    parser.add_argument('--batch', type=int, default=32)
    parser.add_argument('--sequence', type=int, default=1024)
    parser.add_argument('--work', default='build/gpu')
    parser.add_argument('--extra', default='', help="more options for headroom's train")
    options = parser.parse_args()
    rows = []
    for model, precision in itertools.product(options.models.split(','), options.precisions.split(',')):
        config = os.path.join(options.shared, 'data', 'models', model, 'config.json')
        path, data = gpu_run.fresh_model(options.binary, config, options.work, options.sequence, options.batch * 8)
        run = gpu_run.train(options.binary, path, data, os.path.join(options.work, 'run'), None, options.sequence, options.batch, 12, saves=False,
                            extra=['--precision', precision, *options.extra.split()])
        if 'failed' not in run:
            run['share'] = run['tokens_per_second'] / PUBLISHED[model] if model in PUBLISHED else None
        rows.append({'model': model, 'precision': precision, 'published': PUBLISHED.get(model), **run})
        gpu_run.write_results('llmq', rows, ['model', 'precision', 'published', 'tokens_per_second', 'share', 'device_peak_bytes', 'predicted_step_seconds',
                                             'step_seconds', 'failed'], 'Beside the published rates of LLMQ')


if __name__ == '__main__':
    main()
