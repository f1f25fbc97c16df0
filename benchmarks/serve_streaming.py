#!/usr/bin/env python3
"""Speed of `headroom serve` with weights on disk, beside the rate of the disk, in a memory cgroup of exactly --memory.

Usage: serve_streaming.py BINARY --model DIR --disk DIR:SIZE [--memory 4GiB] [--streams 1,8] [--new 8] [--record FILE.md]
                          [-- OPTIONS OF serve]
Greedy texts of token ids, each number of streams at once, by one server: tokens/s in sum from the first request to the last answer,
and bytes of weights a second, by the server's own count and by the kernel's of the process (/proc/PID/io). The disk's rate is that of
reading the model's largest file around the page cache, 1 MiB at a time, while the server waits. Whether the server's reads are direct
is read off its file's flags. --record appends rows to the table of FILE.md. Standard library only.
"""
import argparse
import datetime
import glob
import http.client
import json
import mmap
import os
import random
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'robustness'))
from memory_group import MemoryGroup  # noqa: E402

PIECE, READ = 1 << 20, 4 << 30
PROMPT = 8  # tokens
HEAD = """| date, machine | model, options | streams | tokens/s in sum | s a token of a stream | GB a step | weights, GB/s | disk alone, GB/s | reads | peak of --memory |
|---|---|---|---|---|---|---|---|---|---|
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--model', required=True)
    parser.add_argument('--disk', required=True, help='DIR:SIZE, as --disk-memory takes it')
    parser.add_argument('--memory', default='4GiB')
    parser.add_argument('--streams', default='1,8')
    parser.add_argument('--new', type=int, default=8)
    parser.add_argument('--record')
    cut = sys.argv.index('--') if '--' in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:cut])
    options.more = sys.argv[cut + 1:]
    return options


def bytes_of(text):
    number, unit = re.fullmatch(r'(\d+)\s*([KMGT]?)i?B?', text).groups()
    return int(number) << {'': 0, 'K': 10, 'M': 20, 'G': 30, 'T': 40}[unit]


def disk_rate(model):
    """Bytes a second of a direct read."""
    path = max(glob.glob(os.path.join(model, '*.safetensors')), key=os.path.getsize)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    piece, done, begun = mmap.mmap(-1, PIECE), 0, time.perf_counter()
    while done < READ and os.preadv(file, [piece], done) == PIECE:
        done += PIECE
    os.close(file)
    return done / (time.perf_counter() - begun)


class Served:
    """The server's process inside the cgroup."""

    def __init__(self, options, group):
        def enter():
            if group.path:
                MemoryGroup.write(group.path, 'cgroup.procs', os.getpid())

        command = [options.binary, 'serve', '--model', options.model, '--memory', options.memory, '--disk-memory', options.disk, '--port',
                   '0', '--quiet', *options.more]
        print(' '.join(command), flush=True)
        self.plan, self.port, begun = '', 0, time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        for line in self.process.stdout:
            self.plan += line
            if line.startswith('listening on '):
                self.port = int(line.rsplit(':', 1)[1])
                break
        if not self.port:
            sys.exit(f'the server did not start: exit {self.process.wait()}')
        while self.ask('GET', '/health')[0] != 200:
            time.sleep(0.2)
        self.loaded = time.perf_counter() - begun

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=3600)
        connection.request(method, path, None if body is None else json.dumps(body), {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def metrics(self):
        return {name: float(value) for name, value in re.findall(r'^([^#\s]\S*) (\S+)$', self.ask('GET', '/metrics')[1], re.M)}

    def stored_bytes(self):
        """That the kernel read from a disk for the process."""
        with open(f'/proc/{self.process.pid}/io', encoding='ascii') as text:
            return int(re.search(r'(?m)^read_bytes: (\d+)', text.read())[1])

    def direct(self):
        """Whether the scratch file, the largest that has no name, is open with O_DIRECT."""
        folder, largest, flags = f'/proc/{self.process.pid}', -1, 0
        for number in os.listdir(f'{folder}/fd'):
            if not os.readlink(f'{folder}/fd/{number}').endswith('(deleted)'):
                continue
            size = os.stat(f'{folder}/fd/{number}').st_size
            if size > largest:
                with open(f'{folder}/fdinfo/{number}', encoding='ascii') as info:
                    largest, flags = size, int(re.search(r'flags:\s*(\d+)', info.read())[1], 8)
        return largest >= 0 and bool(flags & os.O_DIRECT)


def generate(served, streams, new):
    """(tokens, seconds, steps, bytes by the server's count, bytes by the kernel's)"""
    draw, counts = random.Random(streams), []

    def complete(prompt):
        status, text = served.ask('POST', '/v1/completions', {'prompt': prompt, 'max_tokens': new, 'temperature': 0, 'ignore_eos': True})
        assert status == 200, text
        counts.append(json.loads(text)['usage']['completion_tokens'])

    threads = [threading.Thread(target=complete, args=([draw.randrange(3, 250) for _ in range(PROMPT)],)) for _ in range(streams)]
    before, stored, begun = served.metrics(), served.stored_bytes(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, after = time.perf_counter() - begun, served.metrics()
    assert len(counts) == streams, 'a request failed'
    grown = {name: after[name] - before[name] for name in ('headroom_steps_total', 'headroom_weight_read_bytes_total')}
    return sum(counts), seconds, grown['headroom_steps_total'], grown['headroom_weight_read_bytes_total'], served.stored_bytes() - stored


def machine():
    with open('/proc/cpuinfo', encoding='ascii', errors='replace') as text:
        name = re.search(r'model name\s*: (.*)', text.read())[1].strip()
    return f'{datetime.date.today()}, {name}, {os.cpu_count()} cores'


def record(path, row):
    new = not os.path.exists(path)
    with open(path, 'a', encoding='utf-8') as file:
        file.write((HEAD if new else '') + row + '\n')


def main():
    options = arguments()
    limit = bytes_of(options.memory)
    group = MemoryGroup(limit, 'headroom-serve-streaming')
    served = Served(options, group)
    print(served.plan + f'ready after {served.loaded:.0f} s', flush=True)
    direct = 'direct' if served.direct() else 'by the page cache'
    try:
        for streams in map(int, options.streams.split(',')):
            rate = disk_rate(options.model)
            tokens, seconds, steps, read, stored = generate(served, streams, options.new)
            metrics = served.metrics()
            peak = metrics['headroom_process_peak_bytes']
            assert peak <= limit, f'{peak} bytes of {limit}'
            row = (f'| {machine()} | {os.path.basename(os.path.normpath(options.model))}, `--memory {options.memory} {" ".join(options.more)}` '
                   f'| {streams} | {tokens / seconds:.3f} | {seconds / (tokens / streams):.1f} | {read / steps / 1e9:.1f} | {read / seconds / 1e9:.2f} '
                   f'| {rate / 1e9:.2f} | {direct} | {peak / limit:.1%} |')
            print(row, f'{steps:.0f} steps in {seconds:.0f} s; the kernel read {stored / 1e9:.1f} GB, the server counted {read / 1e9:.1f} GB', sep='\n', flush=True)
            if options.record:
                record(options.record, row)
    finally:
        served.process.terminate()
        served.process.wait()
        print('cgroup' if group.path else 'no cgroup could be made', 'exit', served.process.returncode)
        group.close()


if __name__ == '__main__':
    main()
