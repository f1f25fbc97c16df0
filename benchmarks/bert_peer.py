#!/usr/bin/env python3
"""A training step of an HF sequence classifier in PyTorch on the CPU, for compare_bert.py and ladder.py. Prints one JSON
line: tok_s, peak_rss_bytes.

Usage: bert_peer.py MODEL_DIR [--batch 32 --seq 128 --steps 6 --threads 2 --matmul highest|medium] [--compile] [--checkpointing]
                    [--accumulate 4] [--bf16] [--optim adamw|adafactor|adamw_bnb_8bit]
Random weights from MODEL_DIR/config.json, random tokens, fp32 or bf16 autocast, clipping. The batch is cut into
--accumulate micro-batches. Time per step: median over the steps after the first; peak: the largest resident set of
samples every 10 ms. Needs torch, transformers and psutil, and for 8 bits bitsandbytes.
"""
import argparse
import json
import statistics
import threading
import time

import psutil
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.optimization import Adafactor


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model')
    parser.add_argument('--batch', type=int, default=32)
    parser.add_argument('--seq', type=int, default=128)
    parser.add_argument('--steps', type=int, default=6)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--matmul', default='medium')
    parser.add_argument('--compile', action='store_true')
    parser.add_argument('--checkpointing', action='store_true')
    parser.add_argument('--accumulate', type=int, default=1)
    parser.add_argument('--bf16', action='store_true')
    parser.add_argument('--optim', default='adamw')
    return parser.parse_args()


def optimizer_of(name, parameters):
    if name == 'adafactor':
        return Adafactor(parameters, lr=1e-4, scale_parameter=False, relative_step=False)
    if name == 'adamw_bnb_8bit':
        import bitsandbytes
        return bitsandbytes.optim.AdamW8bit(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, fused=True)


class PeakMemory(threading.Thread):
    """The largest resident set seen while it runs."""

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes = 0
        self.stopped = False

    def run(self):
        process = psutil.Process()
        while not self.stopped:
            self.bytes = max(self.bytes, process.memory_info().rss)
            time.sleep(0.01)


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision(options.matmul)
    config = AutoConfig.from_pretrained(options.model)
    model = AutoModelForSequenceClassification.from_config(config, attn_implementation='sdpa').float().train()
    if options.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})
    optimizer = optimizer_of(options.optim, model.parameters())
    forward = torch.compile(model) if options.compile else model
    ids = torch.randint(1000, config.vocab_size, (options.batch, options.seq))
    mask = torch.ones_like(ids)
    labels = torch.randint(0, config.num_labels, (options.batch,))
    peak = PeakMemory()
    peak.start()
    seconds = []
    for _ in range(options.steps):
        began = time.perf_counter()
        for rows in torch.arange(options.batch).chunk(options.accumulate):
            with torch.autocast('cpu', torch.bfloat16, enabled=options.bf16):
                loss = forward(input_ids=ids[rows], attention_mask=mask[rows], labels=labels[rows]).loss
            (loss / options.accumulate).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - began)
    peak.stopped = True
    print(json.dumps({'tok_s': round(options.batch * options.seq / statistics.median(seconds[1:]), 1), 'peak_rss_bytes': peak.bytes,
                      'parameters': sum(p.numel() for p in model.parameters()), 'torch': torch.__version__}))


if __name__ == '__main__':
    main()
