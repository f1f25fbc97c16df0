#!/usr/bin/env python3
"""headroom's QLoRA and PEFT over bitsandbytes' 4-bit base side by side: tokens per second and peak resident memory.

Usage: compare_qlora.py HEADROOM_BINARY --torch-python PYTHON [--shared ../shared] [--memory 1GiB] [--rounds 3]
Both sides train adapters of rank 16 on all linear layers of SHARED/data/models/smollm2-135m (random weights, random tokens) over an nf4
base, products in bf16 (or in fp32, with --precision 32-true), at sequence 512 and global batch 4 with AdamW and clipping on 2 threads.
The peer is qlora_peer.py beside this script; bitsandbytes' layers are not compiled. Rounds, medians and results are those of
compare_torch.py, whose options these are; headroom's budget is half of what the peer took unless --memory says otherwise. Writes
benchmarks/results/compare_qlora.json and .md. Standard library only.
"""
import json
import os

import compare_torch

HERE = os.path.dirname(os.path.abspath(__file__))


class Qlora(compare_torch.Comparison):
    def run_peer(self, peer, precision):
        command = [self.options.torch_python, os.path.join(HERE, 'qlora_peer.py'), os.path.join(self.work, 'model'),
                   '--compute', 'bf16' if precision.startswith('bf16') else 'fp32', '--micro-batch', str(self.options.batch),
                   '--seq', str(self.options.sequence), '--steps', str(self.options.steps), '--threads', str(self.options.threads)]
        output, _ = self.call(command)
        result = json.loads(output.strip().split('\n')[-1])
        self.keep(f'torch {peer}', precision, command, result['tok_s'], result['peak_rss_bytes'], {'torch': result['torch']})

    def budgets(self, precision):
        if self.options.memory:
            return self.options.memory.split(',')
        return [max(run['peak_rss_bytes'] for run in self.runs if run['side'] == 'torch plain') // 2]


if __name__ == '__main__':
    compare_torch.compare(
        compare_torch.arguments(__doc__, precision='bf16-mixed', peers='plain', lora=True, extra='--technique quantize-weights=nf4',
                                work='build/benchmark-qlora', name='compare_qlora'),
        Qlora)
