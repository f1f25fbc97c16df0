"""One optimizer of torch or bitsandbytes over the weights of a model.safetensors: seconds of each step, and the memory that a step
adds, as one line of JSON.

Usage: optimizer_peer.py MODEL_DIR NAME [--steps 11] [--threads 2]     NAME: adamw, adamw_bnb_8bit, lion_8bit
Gradients are random and stay the same. The first step, which makes the states, is not reported. Needs torch, psutil and, for 8 bits,
bitsandbytes.
"""
import argparse
import json
import os
import threading
import time

import psutil
import torch


def shapes_of(folder):
    """The shapes of the tensors, from the file's header."""
    with open(os.path.join(folder, 'model.safetensors'), 'rb') as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), 'little')))
    return [entry['shape'] for name, entry in header.items() if name != '__metadata__']


def optimizer_of(name, parameters):
    if name == 'adamw':
        return torch.optim.AdamW(parameters, lr=1e-3, fused=True)
    import bitsandbytes
    made = {'adamw_bnb_8bit': bitsandbytes.optim.AdamW8bit, 'lion_8bit': bitsandbytes.optim.Lion8bit}[name]
    return made(parameters, lr=1e-3)


class Peak:
    """The largest resident set while a block runs, in 1 ms samples, less the one before it."""

    def __enter__(self):
        self.process, self.done = psutil.Process(), threading.Event()
        self.before = self.largest = self.process.memory_info().rss
        self.sampler = threading.Thread(target=self.sample)
        self.sampler.start()
        return self

    def sample(self):
        while not self.done.wait(0.001):
            self.largest = max(self.largest, self.process.memory_info().rss)

    def __exit__(self, *_):
        self.done.set()
        self.sampler.join()
        self.added = self.largest - self.before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model')
    parser.add_argument('name', choices=('adamw', 'adamw_bnb_8bit', 'lion_8bit'))
    parser.add_argument('--steps', type=int, default=11)
    parser.add_argument('--threads', type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes_of(options.model)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer, seconds = optimizer_of(options.name, parameters), []
    optimizer.step()
    with Peak() as peak:
        optimizer.step()
    for _ in range(options.steps - 1):
        began = time.perf_counter()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    print(json.dumps({'seconds': seconds, 'added_bytes': peak.added, 'elements': sum(p.numel() for p in parameters)}))


if __name__ == '__main__':
    main()
