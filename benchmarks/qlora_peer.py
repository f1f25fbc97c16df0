"""QLoRA as people run it: transformers with a 4-bit base of bitsandbytes and PEFT's adapters, on the CPU. Prints one JSON line: tok_s,
peak_rss_bytes, torch.

Usage: qlora_peer.py MODEL_DIR [--compute bf16] [--micro-batch 4] [--seq 512] [--steps 11] [--threads 2]
MODEL_DIR holds weights, which are quantised as nf4 while they are loaded; products run in bf16 (autocast) or, with --compute fp32, in
fp32; adapters of rank 16 on all linear layers are fp32. Time per step: median over the steps after the first. Peak: the largest resident
set during the steps, in 10 ms samples. Needs torch, transformers, peft, bitsandbytes and psutil.
"""
import argparse
import json
import statistics
import threading
import time

import psutil
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig


COMPUTE = {'bf16': torch.bfloat16, 'fp32': torch.float32}


def build(path, compute):
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4', bnb_4bit_compute_dtype=compute)
    model = AutoModelForCausalLM.from_pretrained(path, quantization_config=config, dtype=compute, attn_implementation='sdpa')
    model.config.use_cache = False
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules='all-linear'))
    model.enable_input_require_grads()
    return model.train()


def watch(process, peak, done):
    while not done.wait(0.01):
        peak[0] = max(peak[0], process.memory_info().rss)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model')
    parser.add_argument('--compute', choices=COMPUTE, default='bf16')
    parser.add_argument('--micro-batch', type=int, default=4)
    parser.add_argument('--seq', type=int, default=512)
    parser.add_argument('--steps', type=int, default=11)
    parser.add_argument('--threads', type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = build(options.model, COMPUTE[options.compute])
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    rows = torch.randint(0, model.config.vocab_size, (options.micro_batch, options.seq))
    peak, done, seconds = [0], threading.Event(), []
    sampler = threading.Thread(target=watch, args=(psutil.Process(), peak, done))
    sampler.start()
    for _ in range(options.steps):
        began = time.perf_counter()
        with torch.autocast('cpu', dtype=torch.bfloat16, enabled=options.compute == 'bf16'):
            loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - began)
    done.set()
    sampler.join()
    print(json.dumps({'tok_s': options.micro_batch * options.seq / statistics.median(seconds[1:]), 'peak_rss_bytes': peak[0],
                      'loss': loss.item(), 'torch': torch.__version__}))


if __name__ == '__main__':
    main()
