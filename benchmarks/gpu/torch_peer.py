#!/usr/bin/env python3
"""The peer of compare_torch.py: full fine-tuning of an HF causal model in PyTorch on one GPU, random weights and tokens.

Usage: torch_peer.py CONFIG_DIR --sequence N --batch N [--precision bf16-mixed|bf16-true] [--compile] [--checkpointing] [--steps 8] [--rounds]
bf16-mixed: weights and states in fp32 under autocast; bf16-true: all in bf16.
transformers with the fastest attention that is installed (flash-attn, else scaled_dot_product_attention), fused AdamW, clipping at 1. Prints one JSON line:
tokens_per_second (median of the steps after the second), device_peak_bytes (what the driver counts for the process, sampled
every 5 ms). --rounds: the same for each line that it reads from its input, so that rounds alternate with those of another program.
"""
import argparse
import importlib.util
import json
import os
import statistics
import sys
import time

from gpu_run import DeviceWatch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('config')
parser.add_argument('--sequence', type=int, required=True)
parser.add_argument('--batch', type=int, required=True)
parser.add_argument('--steps', type=int, default=8)
parser.add_argument('--precision', choices=['bf16-mixed', 'bf16-true'], default='bf16-mixed')
parser.add_argument('--compile', action='store_true')
parser.add_argument('--checkpointing', action='store_true')
parser.add_argument('--rounds', action='store_true')
options = parser.parse_args()

watch = DeviceWatch()
watch.follow(os.getpid())

import torch  # noqa: E402  after the watch, which must see the context being made
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

attention = 'flash_attention_2' if importlib.util.find_spec('flash_attn') else 'sdpa'
config = AutoConfig.from_pretrained(options.config)
config.use_cache = False
torch.manual_seed(0)
mixed = options.precision == 'bf16-mixed'
with torch.device('cuda'):
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32 if mixed else torch.bfloat16)
if options.checkpointing:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
step_model = torch.compile(model) if options.compile else model


def timed_step():
    ids = torch.randint(0, config.vocab_size, (options.batch, options.sequence), device='cuda')
    torch.cuda.synchronize()
    began = time.perf_counter()
    with torch.autocast('cuda', dtype=torch.bfloat16, enabled=mixed):
        loss = step_model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return time.perf_counter() - began


def report(seconds):
    print(json.dumps({'tokens_per_second': options.batch * options.sequence / statistics.median(seconds[2:]),
                      'device_peak_bytes': watch.peak, 'allocated_bytes': torch.cuda.max_memory_allocated(),
                      'torch': torch.__version__, 'attention': attention}), flush=True)


report([timed_step() for _ in range(options.steps)])
for _ in sys.stdin if options.rounds else ():
    report([timed_step() for _ in range(options.steps)])
watch.stop()
