#!/usr/bin/env python3
"""Many event streams of one `headroom serve` at once: how soon /health answers beside them, and how soon the first token comes after a start.

Usage: serve_streams.py BINARY --model DIR [--memory 256MiB] [--streams 256] [--tokens 200] [--rounds 3] [--results FILE.md]
Each round starts a server, measures the time from its start to the first token of a request that is asked again and again from the
beginning, opens the streams together, asks /health every 20 ms while they run, and ends the server. Figures are medians over the rounds
of each round's percentile. Standard library only; the client shares the machine with the server."""
import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import time


async def lines_of(port, request):
    """(status, reader, writer) behind the head of an answer."""
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    writer.write(request)
    await writer.drain()
    status = int((await reader.readline()).split()[1])
    while (await reader.readline()).strip():
        pass
    return status, reader, writer


def post(body):
    text = json.dumps(body).encode()
    return b'POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(text) + text


async def stream(port, body):
    """Tokens of a stream to its end; None where it was refused or broken."""
    status, reader, writer = await lines_of(port, post(body | {'stream': True, 'stream_options': {'include_usage': True}}))
    tokens = None
    while status == 200:
        line = await reader.readline()
        if not line or b'[DONE]' in line:
            break
        if line.startswith(b'data: '):
            usage = json.loads(line[6:]).get('usage')
            tokens = usage['completion_tokens'] if usage else tokens
    writer.close()
    return tokens


async def watch_health(port, ends, seconds):
    while not ends.is_set():
        began = time.monotonic()
        status, reader, writer = await lines_of(port, b'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
        await reader.read()
        writer.close()
        seconds.append(time.monotonic() - began if status == 200 else float('inf'))
        await asyncio.sleep(0.02)


async def first_token(port, began):
    while True:
        try:
            status, reader, writer = await lines_of(port, post({'prompt': 'Once upon a time', 'max_tokens': 1, 'temperature': 0}))
            await reader.read()
            writer.close()
            if status == 200:
                return time.monotonic() - began
        except OSError:
            pass
        await asyncio.sleep(0.005)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def resident(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith('VmHWM:'))


async def one_round(options):
    began = time.monotonic()
    server = subprocess.Popen([options.binary, 'serve', '--model', options.model, '--memory', options.memory, '--port', '0', '--quiet',
                               '--max-connections', str(options.streams + 16), *options.more], stdout=subprocess.PIPE, text=True)
    try:
        port = next(int(line.rsplit(':', 1)[1]) for line in server.stdout if line.startswith('listening on '))
        first = await first_token(port, began)
        ends, health = asyncio.Event(), []
        watcher = asyncio.create_task(watch_health(port, ends, health))
        body = {'prompt': 'Once upon a time', 'max_tokens': options.tokens, 'temperature': 1}
        begun = time.monotonic()
        tokens = await asyncio.gather(*(stream(port, body | {'seed': i}) for i in range(options.streams)))
        seconds = time.monotonic() - begun
        ends.set()
        await watcher
        whole = [count for count in tokens if count]
        return {'first': first, 'p50': percentile(health, 0.5), 'p99': percentile(health, 0.99), 'whole': len(whole), 'rate': sum(whole) / seconds,
                'peak': resident(server.pid), 'asked': len(health)}
    finally:
        server.terminate()
        server.wait(60)


def main():
    split = sys.argv.index('--') if '--' in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--model', required=True)
    parser.add_argument('--memory', default='256MiB')
    parser.add_argument('--streams', type=int, default=256)
    parser.add_argument('--tokens', type=int, default=200)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--results')
    options = parser.parse_args(sys.argv[1:split])
    options.more = sys.argv[split + 1:]
    rounds = [asyncio.run(one_round(options)) for _ in range(options.rounds)]
    middle = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    name = os.path.basename(os.path.normpath(options.model))
    lines = [f'## {options.streams} streams at once, {name}', '',
             f'`serve_streams.py BINARY --model {name} --memory {options.memory} --streams {options.streams} --tokens {options.tokens}{" -- " if options.more else ""}{" ".join(options.more)}`, '
             f'{time.strftime("%Y-%m-%d")}, {os.cpu_count()} cores ({platform.machine()}), {options.rounds} rounds, medians; the clients run on the same cores.', '',
             '| | |', '|---|---|',
             f'| streams that came to their end | {int(middle["whole"])} of {options.streams} |',
             f'| `/health` beside them, median and p99 | {middle["p50"] * 1000:.1f} ms, {middle["p99"] * 1000:.1f} ms of {int(middle["asked"])} |',
             f'| tokens per second, all streams | {middle["rate"]:.0f} |',
             f'| from the start of the program to a first token | {middle["first"]:.2f} s |',
             f'| largest resident set | {middle["peak"] / 2**20:.1f} MiB of {options.memory} |']
    print('\n'.join(lines))
    if options.results:
        with open(options.results, 'w', encoding='utf-8') as out:
            out.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
