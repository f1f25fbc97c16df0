#!/usr/bin/env python3
"""The techniques that people try by hand, one after the other, in PyTorch and in headroom: peak memory and speed.

Usage: ladder.py HEADROOM_BINARY --torch-python PYTHON [--shared ../shared] [--steps 3] [--work DIR]
A classifier of BERT-large's shape (random weights, random tokens, no dropout) at sequence 512 and a global batch of 4, as
in Hugging Face's table of its single-GPU guide, here on the CPU: bf16 instead of fp16. Peers: bert_peer.py. headroom runs
each row with the same choices pinned, and at the end within the least budget of its exact techniques. Memory: the largest
resident set, as the kernel counts it for headroom and 10 ms samples for PyTorch. Writes benchmarks/results/ladder.md and
.json. Standard library only; the peers need torch, transformers, psutil and bitsandbytes.
"""
import json
import os
import shutil
import statistics

import compare_bert
import compare_torch
import task

GIB = 1 << 30
PLENTY = str(20 * GIB)
ACCUMULATE, CHECKPOINT, HALF = 'accumulation, 4 micro-batches', 'checkpointing', 'bf16'
PEER = {ACCUMULATE: ['--accumulate', '4'], CHECKPOINT: ['--checkpointing'], HALF: ['--bf16'],
        'Adafactor': ['--optim', 'adafactor'], '8-bit AdamW': ['--optim', 'adamw_bnb_8bit']}
PINS = {HALF: ['--precision', 'bf16-mixed'], 'Adafactor': ['--optim', 'adafactor'],
        '8-bit AdamW': ['--optim', 'adamw_bnb_8bit']}
EVERYTHING = [ACCUMULATE, CHECKPOINT, HALF]
ROWS = [[], [ACCUMULATE], [ACCUMULATE, CHECKPOINT], [HALF], EVERYTHING, ['Adafactor'], [*EVERYTHING, 'Adafactor'],
        ['8-bit AdamW'], [*EVERYTHING, '8-bit AdamW']]


class Ladder(compare_bert.Classification):
    def peer(self, chosen):
        command = [self.options.torch_python, os.path.join(compare_bert.HERE, 'bert_peer.py'), os.path.dirname(self.config),
                   '--batch', str(self.options.batch), '--seq', str(self.options.sequence), '--steps', str(self.options.steps),
                   '--threads', str(self.options.threads), '--matmul', 'highest',
                   *(option for name in chosen for option in PEER[name])]
        output, _ = self.call(command)
        result = json.loads(output.strip().split('\n')[-1])
        return {'peak_bytes': result['peak_rss_bytes'], 'tokens_per_second': result['tok_s']}

    def options_of(self, chosen):
        shared = [option for name in chosen for option in PINS.get(name, [])]
        rows = '1' if ACCUMULATE in chosen else str(self.options.batch)
        kept = 'block-input' if CHECKPOINT in chosen else 'keep-all'
        return [*shared, '--micro-batch-size', rows, '--technique', f'recompute={kept}']

    def common(self, memory):
        return ['--model', os.path.join(self.work, 'model'), '--memory', str(memory), '--global-batch-size', str(self.options.batch),
                '--max-seq-length', str(self.options.sequence), '--threads', str(self.options.threads)]

    def own(self, options, memory=PLENTY):
        out = os.path.join(self.work, 'run')
        shutil.rmtree(out, ignore_errors=True)
        _, peak = self.call([self.binary, 'train', *self.common(memory), *options, '--data', os.path.join(self.work, 'rows.jsonl'),
                             '--output-dir', out, '--max-steps', str(self.options.steps), '--learning-rate', '1e-4'])
        plan = task.read_json(out, 'plan.json')
        seconds = statistics.median(row['seconds'] for row in task.read_steps(out)[1:])
        return {'planned_bytes': plan['peak_bytes'], 'peak_bytes': peak,
                'tokens_per_second': self.options.batch * self.options.sequence / seconds}

    def least(self):
        plan = task.run([self.binary, 'plan', '--json', *self.common(PLENTY)], (0, 3)).stdout
        return json.loads(plan)['minimum_bytes']

    def measure(self):
        self.rows = []
        for chosen in ROWS:
            name = ' + '.join(chosen) or 'nothing'
            self.rows.append({'row': name, 'torch': self.peer(chosen), 'headroom': self.own(self.options_of(chosen))})
            print(json.dumps(self.rows[-1]), flush=True)
        self.rows.append({'row': 'the least budget with exact techniques, full AdamW states in fp32', 'torch': None,
                          'headroom': self.own([], self.least())})

    def line(self, row):
        first = self.rows[0]
        def cells(side):
            if not row[side]:
                return ['', '', '']
            peak = row[side]['peak_bytes']
            return [f'{peak / GIB:.2f}', f'{peak / first[side]["peak_bytes"]:.2f}', f'{row[side]["tokens_per_second"]:.0f}']
        planned = f'{row["headroom"]["planned_bytes"] / GIB:.2f}'
        return f'| {row["row"]} | ' + ' | '.join([*cells('torch'), planned, *cells('headroom')]) + ' |'

    def write(self):
        base = os.path.join(self.options.results, self.options.name)
        with open(base + '.json', 'w', encoding='utf-8') as out:
            json.dump(self.rows, out, indent=1)
            out.write('\n')
        head = (f'{task.day_and_machine()}. {self.options.model} as a classifier, sequence {self.options.sequence}, global batch '
                f'{self.options.batch}, {self.options.threads} threads; one run of {self.options.steps} steps each, the first not timed, so that speeds are '
                'indications. `benchmarks/ladder.py` says how.\n\n'
                '| what is tried | PyTorch, GiB | of its first row | tokens/s | headroom planned, GiB | measured, GiB | of its first row | '
                'tokens/s |\n' + '|---' * 8 + '|\n')
        with open(base + '.md', 'w', encoding='utf-8') as out:
            out.write(head + '\n'.join(self.line(row) for row in self.rows) + '\n')


def main():
    options = compare_torch.arguments(__doc__, model='bert-large-uncased', precision='32-true', sequence=512, batch=4, steps=3,
                                      work='build/benchmark-ladder', name='ladder')
    ladder = Ladder(options)
    ladder.prepare()
    ladder.measure()
    ladder.write()


if __name__ == '__main__':
    main()
