#!/usr/bin/env python3
"""Writes the shipped profiles of GPUs that headroom has not measured (src/cost/profiles/*.json; H200-141GB it has) from published
measurements, and from estimates where there are none; each profile names the source of its rates.

Usage: gpu_profiles.py [--check] [PROJECT_DIR]

--check writes nothing, names what differs from the committed files, and fails then. Standard library only.
"""
import argparse
import json
import os
import sys

TERA, GIGA, MIB = 1e12, 1e9, 1 << 20
SIZES = [128, 512, 1024, 2048, 4096, 8192]  # of square products
BEST = 'best'  # in place of a size: the best of many shapes
# Where nothing was published for a size: its rate over that of the largest square.
SHARES = {128: 0.05, 512: 0.35, 1024: 0.6, 2048: 0.8, 4096: 0.95, 8192: 1.0}
LARGEST_OF_BEST = 0.95  # the largest square over the best shape

TORCH = 'PyTorch, zzc0721/torch-performance-test-data'
LT = 'cuBLASLt, xzwgit/gpu-flops-bench'
MAMF = 'stas00/ml-engineering'
OPTUNA = 'mag-/gpu_benchmark'
TRIAD = 'triad, te42kyfo/gpu-benches'

H100_F32 = ({1024: 37.4, 2048: 49.6, 4096: 51.9, 8192: 51.8}, f'H100 SXM, {TORCH} issue 79')
H100_BF16 = ({2048: 677, 4096: 789, 8192: 798}, f'H100 SXM, {TORCH} issue 79')
A100_PCIE = f'A100 PCIe, {TORCH} issue 108'
A100_F32 = ({4096: 15.5, 8192: 17.6}, A100_PCIE)
V100_F32 = ({1024: 10.6, 2048: 12.7, 4096: 13.9, 8192: 14.4}, f'V100 SXM2, {TORCH} issue 140')
V100_BF16 = ({1024: 7.78, 2048: 8.99, 4096: 10.5, 8192: 10.7}, f'V100 SXM2, {TORCH} issue 140')
V100_F16 = ({1024: 57.3, 2048: 78.2, 4096: 95.7, 8192: 97.4}, f'V100 SXM2, {TORCH} issue 140')
V100_TRIAD = (814, f'V100, {TRIAD}')

# name: (isa, memory MiB, context MiB, workspace MiB, fp32, bf16, attention fp32, attention bf16, stream, copy).
# fp32 and bf16: TFLOP/s by size of square products, or of the best, and their source; attention: TFLOP/s forward; stream and copy: GB/s.
# A rate whose source begins with "estimate" is none that anybody measured.
GPUS = {
    'GTX-1080': (61, 8192, 300, 4, ({8192: 8.0}, 'estimate: 0.9 of the peak'),
                 ({8192: 4.0}, 'estimate: half of fp32'), 3.0, 1.5, (256, 'estimate: 0.8 of the peak'), 12),
    'V100-16GB': (70, 16384, 500, 4, V100_F32, V100_BF16, 6.0, 3.0, V100_TRIAD, 12),
    'V100-32GB': (70, 32768, 500, 4, V100_F32, V100_BF16, 6.0, 3.0, V100_TRIAD, 12),
    'A100-40GB': (80, 40960, 500, 4, A100_F32, ({1024: 94.9, 2048: 138, 4096: 234, 8192: 215}, A100_PCIE), 8.0, 120.0,
                  (1375, f'A100 40 GB, {TRIAD}'), 25),
    'A100-80GB': (80, 81920, 500, 4, A100_F32, ({BEST: 271}, f'A100 SXM, {MAMF}'), 8.0, 160.0,
                  (1759, f'A100 80 GB, {TRIAD}'), 25),
    'RTX-3090': (86, 24576, 400, 4, ({8192: 25.0}, 'estimate: 0.7 of the peak, as an RTX 3080 reaches'),
                 ({BEST: 78.0}, f'RTX 3090, {OPTUNA}'), 14.0, 40.0, (842, 'estimate: 0.9 of the peak'), 25),
    'RTX-4090': (89, 24576, 450, 4,
                 ({1024: 45.9, 2048: 53.8, 4096: 53.5, 8192: 56.5}, f'RTX 4090, {TORCH} issue 78; {LT}'),
                 ({1024: 127, 2048: 165, 4096: 175, 8192: 170}, f'RTX 4090, {TORCH} issue 78; {LT}'), 30.0, 90.0,
                 (907, 'estimate: 0.9 of the peak'), 25),
    'H100-80GB': (90, 81920, 600, 32, H100_F32, H100_BF16, 30.0, 450.0, (2680, 'estimate: 0.8 of the peak'), 55),
}

# fp16 products of GPUs without tensor cores for bf16; on others they have the rate of bf16.
FP16 = {
    'GTX-1080': ({8192: 8.0}, 'estimate: that of fp32'),
    'V100-16GB': V100_F16,
    'V100-32GB': V100_F16,
}


def products(dtype, published):
    """The rows of a dtype, smaller ones estimated from the largest."""
    most = LARGEST_OF_BEST * published[BEST] if BEST in published else published[max(published)]
    rates = {size: published.get(size, SHARES[size] * most) for size in SIZES}
    return [{'dtype': dtype, 'rows': size, 'outs': size, 'ins': size, 'flops_per_second': round(rate * TERA)}
            for size, rate in rates.items()]


def sizes_text(dtype, published):
    if BEST in published:
        return f'the best product in {dtype}'
    return f'products in {dtype} of ' + ', '.join(str(size) for size in sorted(published))


def sources(kinds, stream):
    """Which rates come from where; what is published first."""
    known = [(sizes_text(kind, rates), source) for kind, (rates, source) in kinds.items()] + [('streams', stream[1])]
    published = [entry for entry in known if not entry[1].startswith('estimate')]
    rows = [{'rates': rates, 'from': source} for rates, source in published]
    rows += [{'rates': rates, 'from': source} for rates, source in known if source.startswith('estimate')]
    rows.append({'rates': 'other products', 'from': 'estimate: a share of the largest'})
    rows.append({'rates': 'attention, softmax, copies, launches', 'from': 'estimate'})
    return rows


def profile(name):
    isa, memory, context, workspace, fp32, bf16, attention_f32, attention_bf16, stream, copy = GPUS[name]
    kinds = {'fp32': fp32, 'bf16': bf16, **({'fp16': FP16[name]} if name in FP16 else {})}
    return {
        'name': name, 'device': 'cuda', 'threads': 1, 'isa': isa, 'native_bf16': isa >= 80, 'alignment': 256,
        'gemm_workspace_bytes': workspace * MIB, 'memory_bytes': memory * MIB, 'context_bytes': context * MIB,
        'host_context_bytes': 512 * MIB, 'sources': sources(kinds, stream),
        'products': [row for kind, (rates, _) in kinds.items() for row in products(kind.replace('fp', 'f'), rates)],
        'attention': [{'dtype': 'f32', 'forward': round(attention_f32 * TERA), 'backward': round(0.8 * attention_f32 * TERA)},
                      {'dtype': 'bf16', 'forward': round(attention_bf16 * TERA), 'backward': round(0.7 * attention_bf16 * TERA)}],
        'stream_bytes_per_second': round(stream[0] * GIGA), 'optimizer_bytes_per_second': round(stream[0] * GIGA),
        'softmax_bytes_per_second': round(0.875 * stream[0] * GIGA), 'copy_bytes_per_second': round(copy * GIGA),
        'launch_seconds': 5e-06,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('project', nargs='?', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    parser.add_argument('--check', action='store_true')
    arguments = parser.parse_args()
    differing = []
    for name in GPUS:
        path = os.path.join(arguments.project, 'src', 'cost', 'profiles', name + '.json')
        text = json.dumps(profile(name), indent=1) + '\n'
        found = open(path, encoding='utf-8').read() if os.path.exists(path) else None
        if found == text:
            continue
        differing.append(name)
        if not arguments.check:
            with open(path, 'w', encoding='utf-8') as out:
                out.write(text)
    if arguments.check and differing:
        print(f'not as tools/gpu_profiles.py writes them: {", ".join(differing)}')
        return 1
    print(f'{len(GPUS)} profiles, {len(differing)} written' if not arguments.check else f'{len(GPUS)} profiles passed')
    return 0


if __name__ == '__main__':
    sys.exit(main())
