#!/usr/bin/env python3
"""How far predicted steps were off, over every record of benchmarks/results that has a predicted and a measured step.

Usage: prediction_records.py [--results DIR]
Writes prediction_records.md there. Nothing is run. Standard library only.
"""
import argparse
import json
import os
import re
import statistics

HERE = os.path.dirname(os.path.abspath(__file__))
ROOFLINE = re.compile(r'^Step ([\d.]+) s, predicted ([\d.]+) s', re.MULTILINE)
DISK = re.compile(r'^\| (\w[\w ]*) \|(?:[^|]*\|){5} ([\d.]+) \| ([\d.]+) \| [+-]', re.MULTILINE)


def of_plans(results, name):
    """prediction.json: the machine profiled again before each model."""
    rows = read(results, name)['rows']
    return [row['predicted_seconds'] / row['measured_seconds'] for row in rows]


def of_comparison(results, name):
    """compare_*.json: headroom's runs in turns with those of PyTorch."""
    return [run['predicted_step_seconds'] / run['measured_step_seconds'] for run in read(results, name)['runs']
            if 'predicted_step_seconds' in run]


def of_roofline(results, name):
    return [float(predicted) / float(measured) for measured, predicted in ROOFLINE.findall(text_of(results, name))]


def of_disk(results, name):
    return [float(predicted) / float(measured) for _, predicted, measured in DISK.findall(text_of(results, name))]


# File, how it is read, what it is.
RECORDS = [
    ('prediction.json', of_plans, 'sequence 256, three models; profiled before each model'),
    ('compare_torch.json', of_comparison, 'SmolLM2-135M at sequence 512; profiled once, before all sides'),
    ('compare_fp32_zen4.json', of_comparison, 'the same in fp32 on a Zen 4; profiled before each run'),
    ('compare_bf16_zen4.json', of_comparison, 'the same in bf16-mixed on a Zen 4; profiled before each run'),
    ('compare_lora_zen4.json', of_comparison, 'adapters on a Zen 4; profiled before each run'),
    ('compare_2048_zen3.json', of_comparison, 'one sequence of 2048 in fp32 on a Zen 3; profiled before each run'),
    ('compare_bert_zen3.json', of_comparison, 'BERT-base in fp32 on a Zen 3; profiled before each run'),
    ('compare_bf16_amx.json', of_comparison, 'SmolLM2-135M in bf16-mixed with AMX; profiled before each run'),
    ('compare_fp32_amx.json', of_comparison, 'the same in fp32'),
    ('compare_medium_amx.json', of_comparison, 'the same in fp32 with products in bf16 parts'),
    ('compare_lora_amx.json', of_comparison, 'adapters with AMX; profiled before each run'),
    ('compare_qlora_amx.json', of_comparison, 'adapters over an nf4 base with AMX; profiled before each run'),
    ('compare_2048.json', of_comparison, 'one sequence of 2048; profiled once'),
    ('compare_bert.json', of_comparison, 'BERT-base at sequence 128; profiled once'),
    ('roofline.md', of_roofline, 'SmolLM2-135M at sequence 512, every op timed; profiled once'),
    ('roofline_amx.md', of_roofline, 'the same with AMX'),
    ('disk_tier.md', of_disk, 'a tier on disk; profiled once'),
]


def text_of(results, name):
    with open(os.path.join(results, name), encoding='utf-8') as file:
        return file.read()


def read(results, name):
    return json.loads(text_of(results, name))


def percentile90(errors):
    return sorted(errors)[min(len(errors) - 1, int(0.9 * len(errors)))]


def line(what, ratios):
    errors = [abs(ratio - 1) for ratio in ratios]
    return (f'| {what} | {len(ratios)} | {min(ratios):.2f} to {max(ratios):.2f} | {100 * statistics.median(errors):.0f} % | '
            f'{100 * percentile90(errors):.0f} % |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--results', default=os.path.join(HERE, 'results'))
    results = parser.parse_args().results
    lines = ['# Predicted over measured step, in all records', '', 'Made by `benchmarks/prediction_records.py` from the records beside it.', '',
             '| record | runs | predicted / measured | median error | p90 |', '|---|---|---|---|---|']
    everything = []
    for name, ratios_of, what in RECORDS:
        ratios = ratios_of(results, name)
        everything += ratios
        lines.append(line(f'[{name}]({name}): {what}', ratios))
    lines.append(line('all', everything))
    lines += ['', 'Within one record of several arithmetics the errors have both signs on one profile: in compare_torch.json fp32 ran faster than '
              'predicted and bf16-mixed slower. What differs is the machine, a shared one, between profile and run; op by op (roofline.md) '
              'kernels of every kind are off together.']
    with open(os.path.join(results, 'prediction_records.md'), 'w', encoding='utf-8') as out:
        out.write('\n'.join(lines) + '\n')
    print('\n'.join(lines))


if __name__ == '__main__':
    main()
