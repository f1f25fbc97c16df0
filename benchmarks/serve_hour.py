#!/usr/bin/env python3
"""`headroom serve` in a memory cgroup of exactly --memory, under twice the load that it takes, for an hour or for as long as is asked for.

Usage: serve_hour.py BINARY --model DIR [--memory 64MiB] [--minutes 60] [--results FILE.md] [-- OPTIONS OF serve]
Clients, twice as many as sequences run together and each with the next request at once, ask for texts of mixed lengths, streams,
several choices, log-probabilities and schemas; some leave in the middle of an answer, some read slowly, some ask for more than can
ever fit. What must hold: the kernel kills nothing; every request is answered in full, or refused as the API says (400 for what cannot
fit, 503 with Retry-After); the arena is the plan's; the resident set does not grow. Needs root for the cgroup; standard library only.
Prints a table; exit 1 where something does not hold."""
import argparse
import collections
import http.client
import json
import os
import platform
import random
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'robustness'))
from memory_group import MemoryGroup  # noqa: E402

SCHEMA = {'type': 'object', 'properties': {'name': {'type': 'string', 'maxLength': 8}, 'age': {'type': 'integer', 'minimum': 0, 'maximum': 99}},
          'required': ['name', 'age'], 'additionalProperties': False}
WORDS = 'once upon a time there was a little girl who had a red ball and a dog that ran to the park with her mom'.split()


def bytes_of(text):
    number, unit = re.fullmatch(r'(\d+)\s*([KMG]?)i?B?', text).groups()
    return int(number) << {'': 0, 'K': 10, 'M': 20, 'G': 30}[unit]


class Served:
    """The server's process inside the cgroup."""

    def __init__(self, binary, model, memory, group, more):
        def enter():
            if group.path:
                MemoryGroup.write(group.path, 'cgroup.procs', os.getpid())

        self.process = subprocess.Popen([binary, 'serve', '--model', model, '--memory', str(memory), '--port', '0', '--quiet', *more],
                                        stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        self.port = 0
        for line in self.process.stdout:
            if line.startswith('listening on '):
                self.port = int(line.rsplit(':', 1)[1])
                break
        if not self.port:
            sys.exit(f'the server did not start: exit {self.process.wait()}')
        while self.ask('GET', '/health').status != 200:
            time.sleep(0.05)
        self.values = self.metrics()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=300)
        connection.request(method, path, None if body is None else json.dumps(body), {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        answer.connection = connection
        return answer

    def metrics(self):
        text = self.ask('GET', '/metrics').read().decode()
        return {name: float(value) for name, value in re.findall(r'^([^#\s]\S*) (\S+)$', text, re.M)}

    def resident(self, field='VmRSS'):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith(field + ':'))


class Load:
    """The clients and what became of their requests."""

    def __init__(self, served, context):
        self.served, self.context = served, context
        self.outcomes, self.wrong = collections.Counter(), []
        self.lock = threading.Lock()
        self.ends = False

    def note(self, outcome, wrong=None):
        with self.lock:
            self.outcomes[outcome] += 1
            if wrong and len(self.wrong) < 20:
                self.wrong.append(wrong)

    def request(self, draw):
        """(kind, path, body); the answer to kind 'too long' is 400."""
        kind = draw.choices(['text', 'stream', 'choices', 'scores', 'schema', 'leaves', 'slow', 'too long'], [6, 6, 2, 2, 3, 3, 1, 1])[0]
        prompt = ' '.join(draw.choices(WORDS, k=draw.choice([2, 8, 30, self.context // 8])))
        body = {'prompt': prompt, 'max_tokens': draw.choice([1, 8, 40, self.context // 3]), 'temperature': draw.choice([0, 0.9])}
        if kind == 'choices':
            body |= {'n': 3, 'temperature': 1}
        elif kind == 'scores':
            body |= {'logprobs': 4, 'max_tokens': 12}
        elif kind == 'schema':
            body |= {'response_format': {'type': 'json_schema', 'json_schema': {'name': 'person', 'schema': SCHEMA}}, 'max_tokens': self.context // 3}
        elif kind == 'too long':
            body['max_tokens'] = self.context * 4
        if kind in ('stream', 'leaves', 'slow'):
            body |= {'stream': True, 'stream_options': {'include_usage': True}}
        return kind, body

    def one(self, draw):
        kind, body = self.request(draw)
        try:
            answer = self.served.ask('POST', '/v1/completions', body)
            if answer.status == 503 and answer.getheader('Retry-After'):
                self.note('refused: busy (503, Retry-After)')
                time.sleep(min(0.2, float(answer.getheader('Retry-After'))))
            elif kind == 'too long':
                self.note('refused: cannot fit (400)' if answer.status == 400 else 'wrong', None if answer.status == 400 else f'{kind}: {answer.status}')
            elif answer.status != 200:
                self.note('wrong', f'{kind}: {answer.status} {answer.read(300)}')
            elif kind == 'leaves':
                answer.fp.readline()
                self.note('left by the client')
            elif body.get('stream'):
                self.stream(answer, kind)
            else:
                self.whole(json.loads(answer.read()), kind, body)
            answer.connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.note('wrong', f'{kind}: {error!r}')

    def whole(self, answer, kind, body):
        choices = answer['choices']
        ended = all(choice['finish_reason'] in ('stop', 'length') for choice in choices)
        if kind == 'schema' and choices[0]['finish_reason'] == 'stop':
            ended = set(json.loads(choices[0]['text'])) == {'name', 'age'}
        self.note('answered' if ended and len(choices) == body.get('n', 1) else 'wrong', None if ended else f'{kind}: {choices}')

    def stream(self, answer, kind):
        usage, done = None, False
        for line in answer.fp:
            if kind == 'slow':
                time.sleep(0.02)
            if line.startswith(b'data: [DONE]'):
                done = True
                break
            if line.startswith(b'data: '):
                usage = json.loads(line[6:]).get('usage') or usage
        self.note('answered' if done and usage else 'wrong', None if done and usage else f'{kind}: a stream without an end')

    def client(self, seed):
        draw = random.Random(seed)
        while not self.ends:
            self.one(draw)

    def run(self, clients, seconds):
        threads = [threading.Thread(target=self.client, args=(seed,), daemon=True) for seed in range(clients)]
        for thread in threads:
            thread.start()
        began, samples, waiting = time.monotonic(), [], []
        while time.monotonic() - began < seconds and self.served.process.poll() is None:
            time.sleep(min(5.0, seconds / 20))
            samples.append(self.served.resident())
            waiting.append(self.served.metrics()['vllm:num_requests_waiting'])
            print(f'\r{time.monotonic() - began:6.0f} s  {sum(self.outcomes.values())} requests  {samples[-1] / 2**20:.1f} MiB', end='', file=sys.stderr)
        self.ends = True
        for thread in threads:
            thread.join(60)
        print(file=sys.stderr)
        return samples, waiting


def killed(group):
    """How often the kernel killed a process of the group; None where there is no group."""
    for name, pattern in (('memory.events', r'oom_kill (\d+)'), ('memory.oom_control', r'oom_kill (\d+)')):
        path = f'{group.path}/{name}'
        if group.path and os.path.exists(path):
            with open(path, encoding='ascii') as text:
                found = re.search(pattern, text.read())
            return int(found[1]) if found else None
    return None


def main():
    split = sys.argv.index('--') if '--' in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--model', required=True)
    parser.add_argument('--memory', type=bytes_of, default=64 << 20, help='of the cgroup and of the server (64MiB)')
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--results', help='writes the table here')
    options, more = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1:]
    group = MemoryGroup(options.memory, 'headroom-serve')
    served = Served(options.binary, options.model, options.memory, group, more)
    with open(os.path.join(options.model, 'config.json'), encoding='utf-8') as text:
        context = json.load(text)['max_position_embeddings']
    load = Load(served, context)
    first = served.resident()
    samples, waiting = load.run(2 * 32, options.minutes * 60)
    alive = served.process.poll() is None
    end = served.metrics() if alive else collections.defaultdict(float)
    peak = served.resident('VmHWM') if alive else 0
    if alive:
        served.process.terminate()
    code = served.process.wait(120)
    kills = killed(group)
    group.close()
    settled = samples[len(samples) // 10:] or [0]
    grown = max(settled[len(settled) // 2:] or [0]) - max(settled[:len(settled) // 2] or [0])
    checks = [('lived, and ended when it was told to', alive and code == 0, f'exit {code}'),
              ('processes killed by the kernel', kills in (0, None), 'no cgroup could be made' if kills is None else kills),
              ('requests answered', load.outcomes['answered'] > 0, load.outcomes['answered']),
              *((name, True, load.outcomes[name]) for name in sorted(load.outcomes) if name not in ('answered', 'wrong')),
              ('requests that went wrong', load.outcomes['wrong'] == 0, load.outcomes['wrong']),
              ('steps of the model', True, int(end['headroom_steps_total'])),
              ('tokens drawn', True, int(end['vllm:generation_tokens_total'])),
              ('sequences that waited, median', True, sorted(waiting)[len(waiting) // 2] if waiting else 0),
              ('arena, planned and measured, bytes', end['headroom_arena_measured_bytes'] <= end['headroom_arena_planned_bytes'],
               f"{int(end['headroom_arena_planned_bytes'])}, {int(end['headroom_arena_measured_bytes'])}"),
              ('planned peak of the process, bytes', peak <= end['headroom_planned_peak_bytes'], int(end['headroom_planned_peak_bytes'])),
              ('resident set: as the load began, most, bytes', True, f'{first}, {peak}'),
              ('growth of the second half of the time over the first, bytes', grown <= 1 << 20, grown)]
    lines = ['# An hour of `serve` under twice its load', '',
             f'`serve_hour.py BINARY --model {os.path.basename(os.path.normpath(options.model))} --memory {options.memory} --minutes {options.minutes:g}`, '
             f'{time.strftime("%Y-%m-%d")}, {os.cpu_count()} cores ({platform.machine()}), 64 clients, each with the next request at once.', '',
             '| | | |', '|---|---|---|']
    lines += [f'| {name} | {figure} | {"" if holds else "**does not hold**"} |' for name, holds, figure in checks]
    print('\n'.join(lines))
    for wrong in load.wrong:
        print('  ' + wrong)
    if options.results:
        with open(options.results, 'w', encoding='utf-8') as out:
            out.write('\n'.join(lines) + '\n')
    sys.exit(0 if all(holds for _, holds, _ in checks) else 1)


if __name__ == '__main__':
    main()
