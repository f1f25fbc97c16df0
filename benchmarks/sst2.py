#!/usr/bin/env python3
"""A classifier learns SST-2 from random weights: accuracy on held-out rows after each epoch.

Usage: sst2.py HEADROOM_BINARY [--shared ../shared] [--epochs 2] [--threads 2]
A BERT of 2 layers, width 64, with the vocabulary of bert-base-uncased, trains on SHARED/data/text/sst2/train.tsv; the
program evaluates dev.tsv after each epoch. Writes benchmarks/results/sst2.md. Standard library only.
"""
import argparse
import collections
import json
import os
import subprocess
import tempfile

import task

CONFIG = {'model_type': 'bert', 'architectures': ['BertForSequenceClassification'], 'vocab_size': 30522, 'hidden_size': 64,
          'num_hidden_layers': 2, 'num_attention_heads': 2, 'intermediate_size': 128, 'max_position_embeddings': 64,
          'type_vocab_size': 2, 'hidden_act': 'gelu', 'layer_norm_eps': 1e-12, 'pad_token_id': 0,
          'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0,
          'id2label': {'0': 'negative', '1': 'positive'}}
BATCH = 32


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary', help='the headroom program')
    parser.add_argument('--shared', default=os.path.join(here, '..', '..', 'shared'))
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    return parser.parse_args()


def labels(path):
    with open(path, encoding='utf-8') as rows:
        return collections.Counter(row.rstrip('\n').split('\t')[1] for row in rows if row.strip())


def main():
    options = arguments()
    data = os.path.join(os.path.abspath(options.shared), 'data', 'text', 'sst2')
    tokenizer = os.path.join(os.path.abspath(options.shared), 'data', 'tokenizers', 'bert-base-uncased', 'tokenizer.json')
    rows, held_out = sum(labels(os.path.join(data, 'train.tsv')).values()), labels(os.path.join(data, 'dev.tsv'))
    steps = -(-rows // BATCH)
    with tempfile.TemporaryDirectory() as work:
        config, model, out = (os.path.join(work, name) for name in ('config.json', 'model', 'out'))
        with open(config, 'w', encoding='utf-8') as text:
            json.dump(CONFIG, text)
        subprocess.run([options.binary, 'init', '--config', config, '--tokenizer', tokenizer, '--output-dir', model], check=True)
        subprocess.run([options.binary, 'train', '--model', model, '--data', os.path.join(data, 'train.tsv'), '--eval-data',
                        os.path.join(data, 'dev.tsv'), '--eval-steps', str(steps), '--output-dir', out, '--memory', '400MiB',
                        '--max-seq-length', '48', '--global-batch-size', str(BATCH), '--num-train-epochs', str(options.epochs),
                        '--learning-rate', '1e-3', '--threads', str(options.threads)], check=True)
        lines = task.read_metrics(out)
        run = task.read_json(out, 'run.json')
    seconds = sum(line['seconds'] for line in lines if 'seconds' in line)
    table = [f'{task.day_and_machine()}. {rows} rows, {steps} steps of {BATCH} an epoch, {options.threads} threads; {seconds:.0f} s of training steps, peak RSS '
             f'{run["process_peak_rss_bytes"] / 2 ** 20:.0f} MiB. The larger class has '
             f'{max(held_out.values()) / sum(held_out.values()):.1%} of the {sum(held_out.values())} held-out rows.', '',
             '| epoch | loss on dev.tsv | accuracy on dev.tsv |', '|---|---|---|']
    for line in lines:
        if 'eval_loss' in line:
            table.append(f"| {line['step'] / steps:.0f} | {line['eval_loss']:.4f} | {line['eval_accuracy']:.1%} |")
    with open(os.path.join(options.results, 'sst2.md'), 'w', encoding='utf-8') as text:
        text.write('\n'.join(table) + '\n')
    print('\n'.join(table))


if __name__ == '__main__':
    main()
