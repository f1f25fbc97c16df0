#!/usr/bin/env python3
"""headroom and PyTorch side by side on a classifier of BERT-base's shape: tokens per second and peak resident memory.

Usage: compare_bert.py HEADROOM_BINARY --torch-python PYTHON [--shared ../shared] [--memory 3GiB] [--rounds 3]
Both sides train SHARED/data/models/bert-base-uncased as BertForSequenceClassification with two classes (random weights,
random tokens, no dropout on either side) at sequence 128 and global batch 32, fp32, AdamW with clipping,
on 2 threads. Peers: bert_peer.py beside this script, plain and compiled. Rounds, medians, budgets and results are those
of compare_torch.py, whose options these are; writes benchmarks/results/compare_bert.json and .md. Standard library only.
"""
import json
import os
import random
import shutil

import compare_torch

HERE = os.path.dirname(os.path.abspath(__file__))


class Classification(compare_torch.Comparison):
    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(os.path.join(self.work, 'config'))
        with open(self.config, encoding='utf-8') as text:
            config = json.load(text)
        config.update(architectures=['BertForSequenceClassification'], id2label={'0': 'negative', '1': 'positive'},
                      label2id={'negative': 0, 'positive': 1}, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        self.config = os.path.join(self.work, 'config', 'config.json')
        with open(self.config, 'w', encoding='utf-8') as out:
            json.dump(config, out)
        draw = random.Random(0)
        with open(os.path.join(self.work, 'rows.jsonl'), 'w', encoding='utf-8') as out:
            for _ in range(self.options.batch * self.options.steps):
                ids = [draw.randrange(1000, config['vocab_size']) for _ in range(self.options.sequence)]
                out.write(json.dumps({'input_ids': ids, 'label': draw.randrange(2)}) + '\n')
        self.make_model()

    def run_peer(self, peer, precision):
        command = [self.options.torch_python, os.path.join(HERE, 'bert_peer.py'), os.path.dirname(self.config),
                   '--batch', str(self.options.batch), '--seq', str(self.options.sequence), '--steps', str(self.options.steps),
                   '--threads', str(self.options.threads), '--matmul', precision.partition('/')[2] or 'medium',
                   *compare_torch.PEERS[peer]]
        output, _ = self.call(command)
        result = json.loads(output.strip().split('\n')[-1])
        self.keep(f'torch {peer}', precision, command, result['tok_s'], result['peak_rss_bytes'], {'torch': result['torch']})


if __name__ == '__main__':
    compare_torch.compare(
        compare_torch.arguments(__doc__, model='bert-base-uncased', precision='32-true/highest,32-true/medium',
                                peers='compile,plain', sequence=128, batch=32, work='build/benchmark-bert',
                                name='compare_bert'),
        Classification)
