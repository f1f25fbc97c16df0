#!/usr/bin/env python3
"""Checks that a server on a GPU gives each request the text that it gets alone.

Usage: serve.py HEADROOM MODEL_DIR [--device cuda:0] [--requests 12] [--tokens 24] [--extra "ARGS"]
Sends prompts one after another, greedy, then all at once, and compares. Prints N passed, N failed; standard library only.
"""
import argparse
import concurrent.futures
import json
import os
import shlex
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from served import Server  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('model')
    parser.add_argument('--device', default='cuda:0')
    parser.add_argument('--requests', type=int, default=12)
    parser.add_argument('--tokens', type=int, default=24)
    parser.add_argument('--extra', default='')
    options = parser.parse_args()
    passed, failed = 0, 0

    def check(name, holds, figure=''):
        nonlocal passed, failed
        passed, failed = passed + holds, failed + (not holds)
        print('ok  ' if holds else 'FAIL', name, figure)

    with tempfile.TemporaryDirectory(prefix='headroom-serve-') as home:
        server = Server(options.binary, options.model, home, '--device', options.device, '--memory', '2GiB', *shlex.split(options.extra))

        def get(path, body=None):
            request = urllib.request.Request(server.url + path, json.dumps(body).encode() if body else None, {'Content-Type': 'application/json'})
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.read().decode()

        model = json.loads(get('/v1/models'))['data'][0]['id']

        def text_of(prompt):
            body = {'model': model, 'prompt': prompt, 'max_tokens': options.tokens, 'temperature': 0, 'ignore_eos': True}
            return json.loads(get('/v1/completions', body))['choices'][0]['text']

        prompts = ['Once upon a time' + ' there was a little dog' * (i % 5) + ' ' * (i % 2) + chr(ord('A') + i) for i in range(options.requests)]
        began = time.monotonic()
        alone = [text_of(prompt) for prompt in prompts]
        between = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(options.requests) as pool:
            together = list(pool.map(text_of, prompts))
        ended = time.monotonic()
        check('every text is that of its request alone', alone == together, f'{sum(a == b for a, b in zip(alone, together))} of {len(alone)}')
        check('texts differ from prompt to prompt', len(set(alone)) > 1, len(set(alone)))
        tokens = options.requests * options.tokens
        print(f'{tokens / (between - began):.0f} tokens/s one after the other, {tokens / (ended - between):.0f} together')
        server.stop()
    print(f'{passed} passed, {failed} failed')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
