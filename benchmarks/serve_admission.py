#!/usr/bin/env python3
"""`headroom serve` with a KV pool of a quarter of what its sequences may need: admission `balanced` beside `guaranteed`, in turns.

Usage: serve_admission.py BINARY --model DIR [--sequences 32] [--max-model-len 512] [--requests 256] [--mean 60] [--full-every N]
                          [--rounds 3] [--results FILE.md] [-- OPTIONS OF serve]
The requests are the same for both: prompts of 16 to 128 random ids, sampled with a seed of their own, max_tokens up to the model's
length; a logit_bias on the token that ends a text makes answers that are about --mean tokens long on average, but with --full-every N
every Nth has the full length. What a request's tokens are depends on its seed alone, so both answer with the same texts; the run
fails where they do not, and where a token was computed twice. Each round starts a server, in a memory cgroup of exactly the budget if
this user may make one, and keeps as many clients as there are sequences busy until all requests are
answered. Prints tokens/s, the medians and 99th percentiles of the seconds between two tokens of a stream, and parks.
Standard library only; the clients share the machine with the server."""
import argparse
import http.client
import json
import math
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'robustness'))
from memory_group import MemoryGroup  # noqa: E402
from serve_hour import Served  # noqa: E402

RULES = ('guaranteed', 'balanced')


def arguments_of(options, rule):
    return ['--max-num-seqs', str(options.sequences), '--max-model-len', str(options.max_model_len), '--admission', rule, *options.more]


def pool_of(options, rule, memory):
    """Tokens that the pool of a budget holds; 0 where it is refused, or holds fewer sequences."""
    text = subprocess.run([options.binary, 'plan', '--serve', '--model', options.model, '--memory', str(memory), *arguments_of(options, rule)],
                          capture_output=True, text=True).stdout
    found = re.search(r'holds (\d+) tokens', text)
    return int(found[1]) if found and f'{options.sequences} sequences are computed together' in text else 0


def budget_for(options, rule, tokens):
    """The least budget, to 64 KiB, whose pool holds so many tokens."""
    low, high = 0, 64 << 30
    while high - low > 1 << 16:
        middle = (low + high) // 2
        low, high = (low, middle) if pool_of(options, rule, middle) >= tokens else (middle, high)
    return high


def requests_of(options):
    draw = random.Random(7)
    config = json.load(open(os.path.join(options.model, 'config.json'), encoding='utf-8'))
    end = config['eos_token_id'][0] if isinstance(config['eos_token_id'], list) else config['eos_token_id']
    bias = math.log(config['vocab_size'] / options.mean)
    for number in range(options.requests):
        prompt = [draw.randrange(3, 250) for _ in range(draw.randrange(16, 129))]
        full = options.full_every and number % options.full_every == 0
        yield {'prompt': prompt, 'max_tokens': options.max_model_len - len(prompt), 'temperature': 1, 'seed': number, 'logit_bias': {str(end): -100 if full else bias},
               'stream': True, 'stream_options': {'include_usage': True}}


class Round:
    """All requests through one server."""

    def __init__(self, options, rule, budget, requests):
        self.requests, self.next, self.lock = requests, 0, threading.Lock()
        self.texts, self.gaps, self.tokens, self.wrong = [None] * len(requests), [], 0, []
        group = MemoryGroup(budget)
        served = Served(options.binary, options.model, budget, group, arguments_of(options, rule))
        self.port = served.port
        begun = time.perf_counter()
        clients = [threading.Thread(target=self.client) for _ in range(options.sequences)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.seconds = time.perf_counter() - begun
        ended = served.process.poll()
        if ended is not None:
            self.wrong.append(f'the server ended with {ended}')
        else:
            self.values = served.metrics()
            computed = self.values['vllm:prompt_tokens_total'], self.values['vllm:generation_tokens_total']
            wanted = sum(len(request['prompt']) for request in requests), self.tokens
            if computed != wanted:
                self.wrong.append(f'{computed} tokens were computed, {wanted} are in prompts and answers')
            served.process.terminate()
            served.process.wait()
        group.close()

    def client(self):
        while True:
            with self.lock:
                number, self.next = self.next, self.next + 1
            if number >= len(self.requests):
                return
            try:
                self.ask(number)
            except (OSError, ValueError, http.client.HTTPException) as error:
                self.wrong.append(f'request {number}: {error!r}')
                return

    def ask(self, number):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=600)
        connection.request('POST', '/v1/completions', json.dumps(self.requests[number]), {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f'{answer.status} {answer.read(200)}')
        text, usage, last, gaps = '', None, None, []
        for line in answer.fp:
            if line.startswith(b'data: [DONE]'):
                break
            if not line.startswith(b'data: {'):
                continue
            event = json.loads(line[6:])
            usage = event.get('usage') or usage
            if event['choices']:
                now = time.perf_counter()
                if last:
                    gaps.append(now - last)
                last, text = now, text + event['choices'][0]['text']
        connection.close()
        with self.lock:
            self.texts[number], self.tokens = text, self.tokens + usage['completion_tokens']
            self.gaps += gaps

    def figures(self):
        gaps = sorted(self.gaps)
        return {'tokens/s': self.tokens / self.seconds, 'answers/s': len(self.requests) / self.seconds, 'gap, median': statistics.median(gaps),
                'gap, p99': gaps[len(gaps) * 99 // 100], 'largest gap': gaps[-1], 'parks': self.values.get('vllm:num_preemptions_total', 0),
                'peak': self.values['headroom_process_peak_bytes']}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--model', required=True)
    parser.add_argument('--sequences', type=int, default=32)
    parser.add_argument('--max-model-len', type=int, default=512)
    parser.add_argument('--requests', type=int, default=256)
    parser.add_argument('--mean', type=float, default=60)
    parser.add_argument('--full-every', type=int, default=0)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--results')
    own = sys.argv[1:sys.argv.index('--')] if '--' in sys.argv else sys.argv[1:]
    options = parser.parse_args(own)
    options.more = sys.argv[len(own) + 2:]
    pool = options.sequences * options.max_model_len // 4
    requests = list(requests_of(options))
    budget = max(budget_for(options, rule, pool) for rule in RULES)
    print(f'a pool of {pool} tokens for {options.sequences} sequences of {options.max_model_len}: {budget} bytes')
    found, texts, failures = {rule: [] for rule in RULES}, None, []
    for number in range(options.rounds):
        for rule in RULES:
            run = Round(options, rule, budget, requests)
            if run.wrong:
                failures.append(f'{rule}: {run.wrong[:3]}')
                continue
            texts = texts or run.texts
            if run.texts != texts:
                failures.append(f'{rule}, round {number + 1}: other texts')
            found[rule].append(run.figures())
            print(rule, {name: round(value, 4) for name, value in found[rule][-1].items()}, flush=True)
    if failures:
        sys.exit('\n'.join(failures))
    median = {rule: {name: statistics.median(run[name] for run in found[rule]) for name in found[rule][0]} for rule in RULES}
    lines = ['| admission | tokens/s | answers/s | between tokens, median | 99 % | p99 / median | largest | parks | peak, MB |', '|---|---|---|---|---|---|---|---|---|']
    for rule in RULES:
        m = median[rule]
        lines.append(f"| {rule} | {m['tokens/s']:.0f} | {m['answers/s']:.2f} | {1000 * m['gap, median']:.0f} ms | {1000 * m['gap, p99']:.0f} ms | {m['gap, p99'] / m['gap, median']:.1f} | "
                     f"{1000 * m['largest gap']:.0f} ms | {m['parks']:.0f} | {m['peak'] / 1e6:.0f} |")
    ratio = median['balanced']['tokens/s'] / median['guaranteed']['tokens/s']
    lines.append('')
    lines.append(f'balanced: {ratio:.2f} times the tokens of guaranteed; every answer has the same text with both')
    print('\n'.join(lines))
    if options.results:
        with open(options.results, 'w', encoding='utf-8') as out:
            out.write(f'{time.strftime("%Y-%m-%d")}, {platform.machine()}, {os.cpu_count()} CPUs, medians of {options.rounds} rounds\n\n' + '\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
