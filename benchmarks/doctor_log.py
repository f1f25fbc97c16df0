#!/usr/bin/env python3
"""Seconds and peak memory of `headroom doctor` on a large log. Usage: doctor_log.py HEADROOM_BINARY [--size 1000] [--kind mixed]

Makes a log of --size MB in a scratch directory (removed afterwards), runs `headroom doctor --json` on it and prints one
line: kind, MB, seconds, MB/s, peak RSS in MiB, messages found. Kinds: `training` (ordinary steps without memory figures),
`metrics` (every line is a memory sample), `mixed` (a traceback with a message every 2000 lines), `messages` (messages only),
`line` (a single line of --size MB with one message in the middle). The requirement is 1 GB in under 10 s and 64 MiB."""
import argparse, json, os, resource, subprocess, sys, tempfile, time

MESSAGE = ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a total capacity of 39.39 GiB of '
           'which 812.31 MiB is free. Including non-PyTorch memory, this process has 38.58 GiB memory in use. Of the allocated '
           'memory 36.90 GiB is allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated.\n')
TRACEBACK = ('Traceback (most recent call last):\n'
             '  File "/usr/lib/python3.11/site-packages/transformers/trainer.py", line 3675, in training_step\n'
             '    loss = self.compute_loss(model, inputs)\n'
             '  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1747, in _call_impl\n'
             '    return forward_call(*args, **kwargs)\n')


def lines(kind):
    """Blocks of about 1 MB each, endless."""
    i = 0
    while True:
        block = []
        for _ in range(8000):
            i += 1
            if kind == 'messages':
                block.append(MESSAGE % (i % 100 + 1))
            elif kind == 'metrics':
                block.append('{"step": %d, "loss": 2.31, "memory/max_reserved(GiB)": %.3f, "memory/max_allocated(GiB)": %.3f}\n'
                             % (i, 12 + i % 7 * 0.01, 11 + i % 5 * 0.01))
            elif kind == 'mixed' and i % 2000 == 0:
                block.append('[rank%d]: ' % (i // 2000 % 8) + TRACEBACK.replace('\n', '\n[rank%d]: ' % (i // 2000 % 8))
                             + MESSAGE % (i // 2000 % 100 + 1))
            else:
                block.append('2024-05-01 12:00:%02d,123 INFO trainer: step %d/500000 loss %.4f lr 1.2e-05 grad_norm 0.83 tok/s 18234\n'
                             % (i % 60, i, 2 + i % 13 / 100))
        yield ''.join(block).encode()


def write_log(path, kind, size):
    with open(path, 'wb') as log:
        if kind == 'line':
            half = b'x' * (1 << 20)
            for part in range(size):
                log.write((MESSAGE % 7).strip().encode() if part == size // 2 else half)
            log.write(b'\n')
            return
        for block in lines(kind):
            log.write(block)
            if log.tell() >= size * 1000000:
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--size', type=int, default=1000, help='MB')
    parser.add_argument('--kind', choices=['training', 'metrics', 'mixed', 'messages', 'line'], default='mixed')
    parser.add_argument('--directory', help='where to put the log (default: the system\'s temporary directory)')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.directory) as scratch:
        path = os.path.join(scratch, 'job.log')
        write_log(path, args.kind, args.size)
        size = os.path.getsize(path) / 1e6
        start = time.monotonic()
        done = subprocess.run([args.binary, 'doctor', '--json', path], capture_output=True, text=True)
        seconds = time.monotonic() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if done.returncode != 0:
        sys.exit(f'{args.binary} doctor failed: {done.stderr.strip()}')
    found = len(json.loads(done.stdout)['messages'])
    print(f'{args.kind} {size:.0f} MB: {seconds:.2f} s, {size / seconds:.0f} MB/s, peak {peak:.0f} MiB, {found} messages')


if __name__ == '__main__':
    main()
