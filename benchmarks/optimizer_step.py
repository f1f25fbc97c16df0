#!/usr/bin/env python3
"""What an update of the weights takes in headroom and in torch or bitsandbytes: nanoseconds a parameter, side by side.

Usage: optimizer_step.py HEADROOM_BINARY --torch-python PYTHON [--optim adamw,adamw_bnb_8bit,lion_8bit]
PYTHON is an interpreter with torch, psutil and bitsandbytes. Both sides update the same shapes: a Llama of 4 layers, hidden 1024, 67 M
weights, nearly all in matrices. headroom trains it on one row of 16 tokens and measures its updates by themselves (operations.json, the run's
second step); each peer step is timed as a whole (optimizer_peer.py). Runs alternate; medians over the rounds, least and largest in
parentheses. Writes benchmarks/results/optimizer_step.md. Standard library only.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess

import task

CONFIG = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'vocab_size': 258, 'hidden_size': 1024, 'intermediate_size': 4096,
          'num_hidden_layers': 4, 'num_attention_heads': 16, 'num_key_value_heads': 16, 'max_position_embeddings': 64,
          'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'tie_word_embeddings': True, 'bos_token_id': 256, 'eos_token_id': 257}
OPS = {'adamw': ('adamw',), 'adamw_bnb_8bit': ('adamw_8bit', 'adamw'), 'lion_8bit': ('lion_8bit', 'lion')}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument('binary')
    parser.add_argument('--torch-python', required=True)
    parser.add_argument('--optim', default='adamw,adamw_bnb_8bit,lion_8bit')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=11, help='of the peer, a round; the first is not counted')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--work', default='build/benchmark')
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    parser.add_argument('--name', default='optimizer_step')
    return parser.parse_args()


class Updates:
    def __init__(self, options):
        self.options = options
        self.work = os.path.abspath(options.work)
        self.model = os.path.join(self.work, 'model')

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        with open(os.path.join(self.work, 'config.json'), 'w', encoding='utf-8') as file:
            json.dump(CONFIG, file)
        task.run([self.options.binary, 'init', '--config', os.path.join(self.work, 'config.json'), '--tokenizer', 'bytes',
                  '--output-dir', self.model])
        task.write_random_rows(os.path.join(self.work, 'rows.jsonl'), CONFIG['vocab_size'], 8, 16)

    def ours(self, name):
        """Seconds of the updates of one step."""
        out = os.path.join(self.work, 'run')
        shutil.rmtree(out, ignore_errors=True)
        task.run([self.options.binary, 'train', '--model', self.model, '--data', os.path.join(self.work, 'rows.jsonl'), '--memory', '4GiB',
                  '--output-dir', out, '--optim', name, '--global-batch-size', '1', '--max-seq-length', '16', '--max-steps', '3',
                  '--threads', self.options.threads, '--quiet'])
        rows = task.read_json(out, 'operations.json')['operations']
        return sum(row['seconds'] for row in rows if row['op'] in OPS[name])

    def peer(self, name):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'optimizer_peer.py')
        done = subprocess.run([self.options.torch_python, script, self.model, name, '--steps', str(self.options.steps), '--threads',
                               str(self.options.threads)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout.strip().split('\n')[-1])

    def row(self, name):
        ours, peers, ratios, added = [], [], [], 0
        for _ in range(self.options.rounds):
            mine, other = self.ours(name), self.peer(name)
            theirs = statistics.median(other['seconds'])
            scale = 1e9 / other['elements']
            ours.append(mine * scale)
            peers.append(theirs * scale)
            ratios.append(mine / theirs)
            added = max(added, other['added_bytes'])
        spread = f'{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})'
        return f'| `{name}` | {statistics.median(ours):.2f} | {statistics.median(peers):.2f} | {spread} | {added / 2**20:.0f} |'


def main():
    options = arguments()
    updates = Updates(options)
    updates.prepare()
    lines = [f'{task.day_and_machine()}. An update of 67 M weights on {options.threads} threads, medians of {options.rounds} alternating rounds; '
             '`benchmarks/optimizer_step.py` says how. headroom allocates nothing in a step.', '',
             '| optimizer | headroom, ns a parameter | torch (`adamw`, fused) or bitsandbytes, ns | headroom / peer | memory the peer\'s step adds, MiB |',
             '|---|---|---|---|---|', *(updates.row(name) for name in options.optim.split(','))]
    text = '\n'.join(lines) + '\n'
    print(text)
    with open(os.path.join(options.results, options.name + '.md'), 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    main()
