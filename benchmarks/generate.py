#!/usr/bin/env python3
"""Prompt and decoding speed of `headroom generate` beside the machine's own limits, measured in the same run.

Usage: generate.py HEADROOM_BINARY MACHINE_LIMITS_BINARY [--model smollm2-135m] [--precisions bf16-true,32-true]
A prompt of 512 tokens (random weights, bytes as tokens), then 128 tokens greedily; and 128 tokens after a prompt of two.
The prompt's limit is the GEMM rate over 2 flops per weight and token, though the output projection runs for the last
token alone: a line under the table has the share of the products that are done. Decoding's is the read bandwidth over the bytes of
the weights and of the cache that a token reads. Each round measures limits, long prompt, short prompt; medians over
rounds. Writes benchmarks/results/generate.md. Standard library only.
"""
import json
import os
import random
import re
import shutil
import statistics

import task

PROMPT, NEW = 512, 128
BYTES = {'32-true': 4, 'bf16-true': 2}
RATE = {'32-true': 'f32_flops_per_second', 'bf16-true': 'bf16_flops_per_second'}


def arguments():
    parser = task.machine_parser(__doc__, 'generate', '4GiB')
    parser.add_argument('--precisions', default='bf16-true,32-true')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--work', default='build/benchmark')
    return parser.parse_args()


class Generation:
    def __init__(self, options):
        self.options = options
        self.model = os.path.join(os.path.abspath(options.work), 'model')
        folder = os.path.join(options.shared, 'data', 'models', options.model)
        with open(os.path.join(folder, 'config.json'), encoding='utf-8') as text:
            self.config = json.load(text)
        shutil.rmtree(options.work, ignore_errors=True)
        task.run([options.binary, 'init', '--config', os.path.join(folder, 'config.json'), '--tokenizer', 'bytes',
             '--output-dir', self.model])
        self.parameters = json.loads(task.run([options.binary, 'plan', '--json', '--model', self.model, '--memory',
                                          '64GiB']).stdout)['parameters']

    def projected_share(self):
        """Of the weights, those that each token of a prompt is multiplied by."""
        table = self.config['vocab_size'] * self.config['hidden_size']
        return 1 - table * (1 if self.config.get('tie_word_embeddings') else 2) / self.parameters

    def generate(self, precision, prompt):
        done = task.run([self.options.binary, 'generate', '--model', self.model, '--prompt', prompt, '--max-new-tokens',
                    NEW + 1, '--precision', precision, '--threads', self.options.threads, '--memory',
                    self.options.memory, '--temperature', 0, '--json'])
        found = re.search(r'prompt: (\d+) tokens in ([\d.]+) s.* then (\d+) tokens in ([\d.]+) s', done.stderr)
        tokens, seconds, decoded, decode_seconds = (float(x) for x in found.groups())
        return int(tokens), tokens / seconds, decoded / decode_seconds

    def cache_bytes(self, precision, positions):
        heads = self.config.get('num_key_value_heads', self.config['num_attention_heads'])
        width = heads * self.config['hidden_size'] // self.config['num_attention_heads']
        return 2 * BYTES[precision] * self.config['num_hidden_layers'] * width * positions

    def measure(self, precision):
        draw = random.Random(0)
        long_prompt = ''.join(chr(97 + draw.randrange(26)) for _ in range(PROMPT - 1))
        rounds = []
        for _ in range(self.options.rounds):
            limits = json.loads(task.run([self.options.limits, self.options.threads]).stdout)
            tokens, prefill, after_prompt = self.generate(precision, long_prompt)
            _, _, from_start = self.generate(precision, 'a')
            gemm = limits[RATE[precision]] / (2 * self.parameters)
            read = limits['read_bytes_per_second']
            weights = self.parameters * BYTES[precision]
            rounds.append({'limits': limits, 'prompt_tokens': tokens, 'prefill': prefill, 'prefill_limit': gemm,
                           'decode': from_start,
                           'decode_limit': read / (weights + self.cache_bytes(precision, NEW // 2)),
                           'decode_after_prompt': after_prompt,
                           'decode_after_prompt_limit':
                               read / (weights + self.cache_bytes(precision, PROMPT + NEW // 2))})
        return rounds

    def all(self):
        lines = [f'{task.day_and_machine()}. {self.options.model}, {self.parameters} weights, {self.options.threads} threads, medians of '
                 f'{self.options.rounds} rounds. `benchmarks/generate.py` says how.', '',
                 '| precision | what | tokens/s | limit, tokens/s | share |', '|---|---|---|---|---|']
        notes, measured = [], []
        for precision in self.options.precisions.split(','):
            rounds = self.measure(precision)
            for key, name in (('prefill', f'prompt of {rounds[0]["prompt_tokens"]} tokens'),
                              ('decode', f'{NEW} tokens from the start'),
                              ('decode_after_prompt', f'{NEW} tokens after the prompt')):
                speed = statistics.median(r[key] for r in rounds)
                limit = statistics.median(r[key + '_limit'] for r in rounds)
                share = statistics.median(r[key] / r[key + '_limit'] for r in rounds)
                lines.append(f'| {precision} | {name} | {speed:.0f} | {limit:.0f} | {100 * share:.0f} % |')
                if key == 'prefill':
                    medians = {name: statistics.median(r['limits'][name] for r in rounds) for name in rounds[0]['limits']}
                    measured.append(f'{precision} {task.describe_limits(medians)}')
                    notes.append(f'{precision} {100 * share * self.projected_share():.0f} %')
        lines += ['', f'The machine then: {"; ".join(measured)}.', '', f'The prompt\'s limit counts all weights, {100 * (1 - self.projected_share()):.0f} % of which are the table of '
                  f'tokens, read once a prompt. Of the products done, its share is: {", ".join(notes)}.']
        with open(os.path.join(self.options.results, self.options.name + '.md'), 'w', encoding='utf-8') as out:
            out.write('\n'.join(lines) + '\n')
        print('\n'.join(lines))


if __name__ == '__main__':
    Generation(arguments()).all()
