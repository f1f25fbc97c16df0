#!/usr/bin/env python3
"""Adapters of a 1.1B model under a kernel limit of 4 GiB: TinyLlama's config, random weights in bf16, --precision bf16-true.

Usage: tinyllama_lora.py HEADROOM_BINARY [--shared ../shared] [--batch 4] [--steps 3] [--work build/tinyllama]
Makes the model with `headroom init` (2.2 GB, kept for the next run), draws random token ids, and trains LoRA r=16 on all linear
layers at sequence 512 inside a memory cgroup of --limit (root; v1 or v2). Writes benchmarks/results/tinyllama_lora.md: the
command, the plan's figures, the kernel's count of the group's peak, tokens per second. Standard library only.
"""
import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

import task

GIB = 2 ** 30
HERE = os.path.dirname(os.path.abspath(__file__))


class MemoryGroup:
    """A memory cgroup without swap beside this process's; processes join it before they start."""

    def __init__(self, limit):
        self.v2 = os.path.exists('/sys/fs/cgroup/cgroup.controllers')
        root = '/sys/fs/cgroup' if self.v2 else '/sys/fs/cgroup/memory'
        self.path = os.path.join(root, f'headroom-benchmark-{os.getpid()}')
        os.mkdir(self.path)
        self.put('memory.max' if self.v2 else 'memory.limit_in_bytes', limit)

    def put(self, name, value):
        with open(os.path.join(self.path, name), 'w', encoding='ascii') as out:
            out.write(str(value))

    def get(self, name):
        with open(os.path.join(self.path, name), encoding='ascii') as text:
            return text.read()

    def join(self):
        self.put('cgroup.procs', os.getpid())

    def peak(self):
        return int(self.get('memory.peak' if self.v2 else 'memory.max_usage_in_bytes'))

    def kills(self):
        rows = dict(line.split() for line in self.get('memory.events' if self.v2 else 'memory.oom_control').splitlines())
        return int(rows.get('oom_kill', 0))

    def remove(self):
        for _ in range(50):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--shared', default=os.path.join(HERE, '..', '..', 'shared'))
    parser.add_argument('--limit', type=int, default=4 * GIB, help='bytes, of the cgroup and of --memory')
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--sequence', type=int, default=512)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--work', default='build/tinyllama')
    parser.add_argument('--profile', help='profile file (the shipped one)')
    parser.add_argument('--results', default=os.path.join(HERE, 'results'))
    return parser.parse_args()


def prepare(options, binary, config):
    os.makedirs(options.work, exist_ok=True)
    model = os.path.join(options.work, 'model')
    if not os.path.exists(os.path.join(model, 'model.safetensors')):
        shutil.rmtree(model, ignore_errors=True)
        subprocess.run([binary, 'init', '--config', config, '--tokenizer', 'bytes', '--output-dir', model, '--dtype', 'bfloat16'],
                       check=True)
    rows = os.path.join(options.work, 'rows.jsonl')
    task.write_random_rows(rows, task.vocabulary_of(config), options.batch * options.steps, options.sequence)
    return model, rows


def processor():
    names = task.processors()
    return f'{names[0]}, {len(names)} threads' if names else platform.processor()


def report(options, command, plan, run, rows, group):
    seconds = statistics.median(row['seconds'] for row in rows[1:] or rows)
    tokens = options.batch * options.sequence
    parts = plan['breakdown']
    lines = [
        '# TinyLlama-1.1B: adapters under 4 GiB', '',
        f'{time.strftime("%Y-%m-%d")}, {processor()}; made by `benchmarks/tinyllama_lora.py`. Random weights in bf16, LoRA r=16 on '
        f'all linear layers, sequence {options.sequence}, {options.batch} sequences per step, inside a memory cgroup of '
        f'{options.limit} bytes ({options.limit / GIB:g} GiB) without a kill.', '',
        '```', command, '```', '', '| | |', '|---|---|',
        f'| parameters | {plan["parameters"]} |',
        f'| weights and adapters in the plan | {parts["weights"]} bytes ({parts["weights"] / GIB:.3f} GiB) |',
        f'| gradients, optimizer states | {parts["gradients"]}, {parts["optimizer"]} bytes |',
        f'| arena + process = planned peak | {plan["arena_bytes"]} + {plan["process_bytes"]} = {plan["peak_bytes"]} bytes '
        f'({plan["peak_bytes"] / GIB:.3f} GiB) |',
        f'| least budget that plans | {plan["minimum_bytes"]} bytes ({plan["minimum_bytes"] / GIB:.3f} GiB) |',
        f'| arena touched by the run | {run["arena_measured_bytes"]} bytes |',
        f'| resident peak of the process | {run["process_peak_rss_bytes"]} bytes ({run["process_peak_rss_bytes"] / GIB:.3f} GiB) |',
        f'| peak of the cgroup (page cache, which the kernel takes back, included) | {group.peak()} bytes '
        f'({group.peak() / GIB:.3f} GiB), {group.kills()} kills |',
        f'| micro-batch, loss chunk, recomputation | {plan["micro_batch_size"]}, {plan.get("loss_chunk_rows")}, '
        f'{plan.get("recompute")} |',
        f'| step, median after the first | {seconds:.2f} s (predicted {plan["predicted_step_seconds"]:.2f} s): '
        f'{tokens / seconds:.1f} tokens/s |',
        f'| losses | {", ".join("%.4f" % row["loss"] for row in rows)} |',
        f'| load of the machine over the last 5 minutes (2 is this run alone) | {os.getloadavg()[1]:.1f} |', '']
    return '\n'.join(lines)


def main():
    options = arguments()
    binary = os.path.abspath(options.binary)
    config = os.path.join(os.path.abspath(options.shared), 'data', 'models', 'tinyllama-1.1b-chat', 'config.json')
    model, rows = prepare(options, binary, config)
    out = os.path.join(options.work, 'run')
    shutil.rmtree(out, ignore_errors=True)
    command = [binary, 'train', '--model', model, '--data', rows, '--memory', str(options.limit), '--output-dir', out,
               '--precision', 'bf16-true', '--lora-r', '16', '--lora-alpha', '32', '--global-batch-size', str(options.batch),
               '--max-seq-length', str(options.sequence), '--max-steps', str(options.steps), '--learning-rate', '1e-4',
               *(['--profile', options.profile] if options.profile else [])]
    shown = ' '.join(command).replace(binary, 'headroom').replace(options.work, 'build/tinyllama')
    group = MemoryGroup(options.limit)
    try:
        status = subprocess.run(command, preexec_fn=group.join, check=False).returncode
        if status:
            sys.exit(f'exit {status}, {group.kills()} kills')
        steps = task.read_steps(out)
        run = task.read_json(out, 'run.json')
        plan = task.read_json(out, 'plan.json')
        text = report(options, shown, plan, run, steps, group)
    finally:
        group.remove()
    with open(os.path.join(options.results, 'tinyllama_lora.md'), 'w', encoding='utf-8') as result:
        result.write(text)
    print(text)


if __name__ == '__main__':
    main()
