#!/usr/bin/env python3
"""The time that packing and length buckets save on rows of real lengths: tokens a second, padding not counted, with and without.

Usage: data_order.py HEADROOM_BINARY [--shared ../shared] [--steps 10] [--threads 2] [--results DIR]
A small Llama with GPT-2's tokenizer trains on the paragraphs of SHARED/data/text/wikitext-2/valid.txt, a row each, at a
sequence of 512 and 8 sequences a step: as they are (padded), with --group-by-length true, with --packing true. The first
two steps of each run are left out. Writes data_order.md to the results. Standard library only.
"""
import argparse
import datetime
import json
import os
import statistics
import tempfile

import task

CONFIG = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'vocab_size': 50257, 'hidden_size': 256,
          'intermediate_size': 704, 'num_hidden_layers': 6, 'num_attention_heads': 4, 'num_key_value_heads': 4,
          'max_position_embeddings': 512, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'tie_word_embeddings': True}
LENGTH, BATCH, SKIPPED = 512, 8, 2
VARIANTS = {'padded': [], '--group-by-length true': ['--group-by-length', 'true'], '--packing true': ['--packing', 'true']}


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary', help='the headroom program')
    parser.add_argument('--shared', default=os.path.join(here, '..', '..', 'shared'))
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    return parser.parse_args()


def write_rows(source, path):
    """Every line with text is a row; returns their number."""
    with open(source, encoding='utf-8') as text:
        rows = [line.strip() for line in text if line.strip()]
    with open(path, 'w', encoding='utf-8') as out:
        out.writelines(json.dumps({'text': row}) + '\n' for row in rows)
    return len(rows)


def measure(options, model, data, out, more):
    """Tokens and seconds of each step."""
    task.run([options.binary, 'train', '--model', model, '--data', data, '--output-dir', out, '--memory', '2GiB',
              '--max-seq-length', LENGTH, '--global-batch-size', BATCH, '--max-steps', options.steps, '--shuffle', 'true',
              '--seed', 1, '--threads', options.threads] + more)
    steps = task.read_metrics(out)
    return [(step['tokens'], step['seconds']) for step in steps if 'seconds' in step][SKIPPED:]


def main():
    options = arguments()
    shared = os.path.join(os.path.abspath(options.shared), 'data')
    lines = []
    with tempfile.TemporaryDirectory() as work:
        config, model, data = (os.path.join(work, name) for name in ('config.json', 'model', 'rows.jsonl'))
        with open(config, 'w', encoding='utf-8') as text:
            json.dump(CONFIG, text)
        rows = write_rows(os.path.join(shared, 'text', 'wikitext-2', 'valid.txt'), data)
        task.run([options.binary, 'init', '--config', config, '--tokenizer',
                  os.path.join(shared, 'tokenizers', 'gpt2', 'tokenizer.json'), '--output-dir', model])
        plain = None
        for number, (name, more) in enumerate(VARIANTS.items()):
            steps = measure(options, model, data, os.path.join(work, f'out{number}'), more)
            tokens, seconds = sum(step[0] for step in steps), sum(step[1] for step in steps)
            rate = tokens / seconds
            plain = plain or rate
            lines.append(f'| {name} | {tokens / len(steps):.0f} | {100 * tokens / len(steps) / (LENGTH * BATCH):.0f} % | '
                         f'{statistics.median(step[1] for step in steps):.3f} | {rate:.0f} | {rate / plain:.2f} |')
    page = ['# Packing and length buckets', '',
            f'{datetime.date.today()}, {task.processors()[0]}, {options.threads} threads, fp32. {rows} paragraphs of wikitext-2 '
            f'(valid.txt), {LENGTH} tokens a sequence at most, {BATCH} sequences a step, {options.steps - SKIPPED} steps after the '
            f'first {SKIPPED}. `benchmarks/data_order.py` makes this page.', '',
            '| rows | tokens a step | of the places | seconds a step (median) | tokens/s | of padded |', '|---|---:|---:|---:|---:|---:|',
            *lines, '', 'Tokens are counted without padding. A packed step holds more rows than the others; '
            'the data of a run takes as many steps fewer.']
    os.makedirs(options.results, exist_ok=True)
    with open(os.path.join(options.results, 'data_order.md'), 'w', encoding='utf-8') as out:
        out.write('\n'.join(page) + '\n')
    print('\n'.join(lines))


if __name__ == '__main__':
    main()
