#!/usr/bin/env python3
"""Does training on a GPU follow the CPU's losses and gradient norms, with NVIDIA's libraries and without, the same bits twice?

Usage: losses.py HEADROOM MODEL_DIR DATA [--precision bf16-mixed] [--head-size N] [--steps 8] [--sequence 128] [--device cuda:0] [--extra OPTIONS]
Trains on the device twice as it is, then without cuDNN, then without cuBLASLt and cuDNN (HEADROOM_CUDA_WITHOUT), and on the CPU in
this precision and in fp32. In fp32 every loss must agree to 1e-4 of itself. In other precisions the device's largest distance from the
CPU's fp32 losses and gradient norms may be twice the CPU's own in that precision, and 1e-4 of the value more; a gradient norm's 2^-8 in any case,
a unit of bf16's last place, since the CPU's own distance falls to a third of the device's on processors with bf16 tiles. --head-size trains, in
the model's place, a fresh one of two layers with two heads of that size. --extra: options of headroom for every run, those in fp32 on the
CPU too. Prints N passed, N failed. Standard library only.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

VARIANTS = {'as it is': '', 'again': '', 'without cudnn': 'cudnn', 'without cublaslt and cudnn': 'cudnn,cublaslt'}


def config_with_heads_of(size, model):
    with open(os.path.join(model, 'config.json'), encoding='utf-8') as file:
        config = json.load(file)
    return config | {'hidden_size': 2 * size, 'intermediate_size': 4 * size, 'num_hidden_layers': 2, 'num_attention_heads': 2,
                     'num_key_value_heads': 1, 'head_dim': size}


def wide_model(options, work):
    with open(f'{work}/config.json', 'w', encoding='utf-8') as file:
        json.dump(config_with_heads_of(options.head_size, options.model), file)
    made = subprocess.run([options.binary, 'init', '--config', f'{work}/config.json', '--tokenizer', os.path.join(options.model, 'tokenizer.json'),
                           '--output-dir', f'{work}/model'], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f'init: {made.stderr.strip()}')
    return f'{work}/model'


def curve(options, model, out, precision, device, without=''):
    """(losses, gradient norms) of a run."""
    command = [options.binary, 'train', '--model', model, '--data', options.data, '--output-dir', out,
               '--max-seq-length', str(options.sequence), '--global-batch-size', '4', '--max-steps', str(options.steps),
               '--learning-rate', '1e-3', '--lr-scheduler-type', 'constant', '--memory', '2GiB', '--precision', precision, '--device', device, *options.extra.split()]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, 'HEADROOM_CUDA_WITHOUT': without})
    if done.returncode:
        sys.exit(f'{" ".join(command)}: exit {done.returncode}: {done.stderr.strip()[-400:]}')
    with open(f'{out}/metrics.jsonl', encoding='utf-8') as lines:
        rows = [row for row in map(json.loads, lines) if 'loss' in row]
    return {'losses': [row['loss'] for row in rows], 'gradient norms': [row['grad_norm'] for row in rows]}


def distance(a, b):
    return max(abs(x - y) / max(abs(y), 1e-9) for x, y in zip(a, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('model')
    parser.add_argument('data')
    parser.add_argument('--precision', default='bf16-mixed')
    parser.add_argument('--head-size', type=int)
    parser.add_argument('--steps', type=int, default=8)
    parser.add_argument('--sequence', type=int, default=128, help='tokens')
    parser.add_argument('--device', default='cuda:0')
    parser.add_argument('--extra', default='')
    options = parser.parse_args()
    passed, failed = 0, 0

    def check(name, holds, figures):
        nonlocal passed, failed
        passed, failed = passed + holds, failed + (not holds)
        print('ok  ' if holds else 'FAIL', name, figures)

    with tempfile.TemporaryDirectory(prefix='headroom-losses-') as work:
        model = wide_model(options, work) if options.head_size else options.model
        exact = curve(options, model, f'{work}/exact', '32-true', 'cpu')
        own = curve(options, model, f'{work}/own', options.precision, 'cpu') if options.precision != '32-true' else exact
        curves = {name: curve(options, model, f'{work}/{i}', options.precision, options.device, without)
                  for i, (name, without) in enumerate(VARIANTS.items())}
        for figure in exact:
            allowed = 2 * distance(own[figure], exact[figure]) + 1e-4
            if figure == 'gradient norms' and options.precision != '32-true':
                allowed = max(allowed, 2 ** -8)
            for name, found in curves.items():
                far = distance(found[figure], exact[figure])
                check(f'{options.precision}, {name}: {figure} within {allowed:.3g} of fp32', far <= allowed, f'{far:.3g}')
        check(f'{options.precision}: the same bits twice', curves['as it is'] == curves['again'], '')
    print(f'{passed} passed, {failed} failed')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
