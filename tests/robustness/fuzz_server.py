#!/usr/bin/env python3
"""Sends damaged and hostile requests to a running server, and checks that it stays as it was.

Usage: fuzz_server.py [PROGRAM] [--model DIR] [--minutes 5] [--seed 1] [--clients 4] [--first K --count 1] [--memory 1GiB]
Each request is one of the API's, changed at random: other types, extreme numbers, deep or wide values, long texts, bytes that
are not UTF-8, cut or doubled bodies, unknown methods and paths, schemas and grammars that grow. Some clients leave before the
answer. Request K of a seed is always the same, so that --first K --count 1 repeats it.
A run fails when the server ends, answers 5xx other than 503, or with a body that is not JSON where it promises JSON; when a
greedy request behind the others has another text than before them; or when the arena's bytes change. With a program built by
`cmake --preset fuzz` each error of a sanitizer ends the server. Prints `N passed, N failed`; exit 77 without PROGRAM's model,
which is ../shared/data/stories260K unless told. Standard library only.
"""
import argparse
import copy
import http.client
import json
import os
import random
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data_files'))
from data_files import SHARED  # noqa: E402
from served import Server  # noqa: E402

TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
SCHEMA = {'type': 'object', 'properties': {'name': {'type': 'string', 'maxLength': 8}, 'age': {'type': 'integer'},
                                           'tags': {'type': 'array', 'items': {'enum': ['a', 'b']}, 'maxItems': 3}},
          'required': ['name'], 'additionalProperties': False}
TOOL = {'type': 'function', 'function': {'name': 'look_up', 'description': 'Looks a word up.', 'parameters': SCHEMA}}
CHAT = [{'role': 'system', 'content': 'Be short.'}, {'role': 'user', 'content': [{'type': 'text', 'text': 'Hello'}]}]
SEEDS = [
    ('/v1/completions', {'prompt': 'Once upon a time', 'max_tokens': 6, 'temperature': 1, 'seed': 3, 'logprobs': 2, 'n': 2, 'stop': ['.', 'the end'],
                         'top_p': .9, 'top_k': 20, 'min_p': .05, 'presence_penalty': .5, 'frequency_penalty': .5, 'logit_bias': {'5': -10}}),
    ('/v1/completions', {'prompt': [[1, 432, 383], [1, 5]], 'max_tokens': 4, 'stream': True, 'stream_options': {'include_usage': True}, 'echo': True}),
    ('/v1/completions', {'prompt': 'The dog', 'max_tokens': 8, 'guided_regex': '(ab|c{2,5})[d-f]*', 'ignore_eos': True, 'min_tokens': 2}),
    ('/v1/completions', {'prompt': 'The dog', 'max_tokens': 8, 'guided_choice': ['yes', 'no'], 'prompt_logprobs': 1}),
    ('/v1/completions', {'prompt': 'The dog', 'max_tokens': 8, 'guided_grammar': 'root ::= "a" item*\nitem ::= "b" | "(" root ")"'}),
    ('/v1/chat/completions', {'messages': CHAT, 'max_completion_tokens': 6, 'stream': True, 'logprobs': True, 'top_logprobs': 3}),
    ('/v1/chat/completions', {'messages': CHAT, 'max_tokens': 12, 'response_format': {'type': 'json_schema', 'json_schema': {'name': 'x', 'schema': SCHEMA}}}),
    ('/v1/chat/completions', {'messages': CHAT, 'max_tokens': 12, 'tools': [TOOL], 'tool_choice': 'required'}),
    ('/v1/responses', {'input': 'Hello', 'max_output_tokens': 5, 'instructions': 'Be short.', 'stream': True}),
    ('/v1/messages', {'model': 'm', 'max_tokens': 5, 'system': 'Be short.', 'messages': [{'role': 'user', 'content': 'Hello'}]}),
    ('/v1/embeddings', {'input': ['Once upon', 'a time'], 'encoding_format': 'float'}),
    ('/tokenize', {'prompt': 'Once upon a time', 'add_special_tokens': True}),
    ('/detokenize', {'tokens': [1, 432, 383, 286]}),
    ('/v1/load_lora_adapter', {'lora_name': 'a', 'lora_path': '/nowhere'}),
    ('/v1/unload_lora_adapter', {'lora_name': 'a'}),
]
NUMBERS = [0, -0.0, -1, 1, 2, 1e-320, 1e308, -1e308, 2**31, 2**32, 2**53 + 1, 2**63, -2**63 - 1, 2**64, 10**40, .1, 511, 512, 513, 1e9]
TEXTS = ['', ' ', '\0', 'a' * 3000, 'é' * 700, '😀' * 300, '\ud800', '\u202e', '{{ 7 * 7 }}', '{% for i in range(10**9) %}x{% endfor %}', '</s>', '[INST]', '\n' * 500,
         '(a*)*b', '(a|a)*' * 30, '[', '(?=x)', '.{0,100000}', '\\', 'root ::= root', 'root ::= "a" root | ', 'root ::= ' + '(' * 400, '..' * 400]
SCHEMAS = [{'$ref': '#'}, {'anyOf': [{'$ref': '#'}] * 40}, {'type': 'array', 'minItems': 10**9}, {'type': 'string', 'pattern': '(a+)+$'}, {'enum': list(range(3000))},
           {'type': 'object', 'properties': {str(i): {'type': 'string'} for i in range(400)}, 'required': [str(i) for i in range(400)]},
           {'type': 'integer', 'minimum': 2**70}, {'not': {}}, {'allOf': [{'type': 'string'}, {'type': 'integer'}]}, {'$defs': {'x': {'$ref': '#/$defs/x'}}, '$ref': '#/$defs/x'}]


def places(value, path=()):
    """The paths of all values within."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, path + (key,))


def deep(draw):
    value = draw.choice([0, 'x', [], {}])
    for _ in range(draw.choice([3, 60, 900])):
        value = [value] if draw.random() < .5 else {'a': value}
    return value


def other_value(draw, value):
    kind = draw.randrange(9)
    if kind == 0:
        return draw.choice(NUMBERS)
    if kind == 1:
        return draw.choice(TEXTS)
    if kind == 2:
        return draw.choice([None, True, False, [], {}, [[]], [None], {'': ''}])
    if kind == 3:
        counts = [0, 1, 2, 40, 600] if len(str(value)) < 300 else [0, 1, 2]  # lists of lists of lists take the client's time
        return [copy.deepcopy(value) for _ in range(draw.choice(counts))]
    if kind == 4:
        return deep(draw)
    if kind == 5:
        return copy.deepcopy(draw.choice(SCHEMAS))
    if kind == 6 and isinstance(value, str):
        at = draw.randrange(len(value) + 1)
        return value[:at] + draw.choice(TEXTS) + value[at:]
    if kind == 7 and isinstance(value, (int, float)):
        return value * draw.choice([-1, 2, 10, 1000])
    return {'type': copy.deepcopy(value), 'value': value}


def changed(draw, body):
    body = copy.deepcopy(body)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        path = draw.choice(list(places(body)))
        if not path:
            if draw.random() < .1:
                return other_value(draw, body)
            key = draw.choice([k for _, seed in SEEDS for k in seed] + ['x' * 200])
            body[key] = other_value(draw, body.get(key))
            continue
        holder = body
        for key in path[:-1]:
            holder = holder[key]
        if draw.random() < .15:
            del holder[path[-1]]
        else:
            holder[path[-1]] = other_value(draw, holder[path[-1]])
        if not isinstance(body, dict):
            return body
    return body


def damaged(draw, data):
    """Bytes of a body, sometimes no JSON any more."""
    kind = draw.randrange(12)
    if kind == 0:
        return data[:draw.randrange(len(data) + 1)]
    if kind == 1:
        return data + data
    if kind == 2:
        data = bytearray(data)
        for _ in range(draw.choice([1, 3, 20])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        return bytes(data)
    if kind == 3:
        return b'[' * draw.choice([10, 5000, 200000])
    return data


def request_of(seed, number):
    """(method, path, headers, body, leaves): request `number` of a seed."""
    draw = random.Random(f'{seed}:{number}')
    path, body = draw.choice(SEEDS)
    data = json.dumps(changed(draw, body), ensure_ascii=draw.random() < .5).encode('utf-8', 'surrogatepass') or b' '
    data = damaged(draw, data)
    method, headers = 'POST', {'Content-Type': 'application/json'}
    if draw.random() < .05:
        method = draw.choice(['GET', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'])
    if draw.random() < .05:
        path = draw.choice(['/', '/v1/models', '/v1/models/x', '/metrics', '/health', '/version', '/v1/' + 'a' * 3000, '/%00', '/../etc/passwd', path + '?x=' + 'y' * 500])
    if draw.random() < .05:
        headers[draw.choice(['Content-Type', 'X-Request-Id', 'Authorization', 'Expect', 'Origin', 'Accept'])] = draw.choice(['', 'a' * 4000, 'text/plain', '100-continue', '\t'])
    return method, path, headers, data, draw.random() < .08


class Run:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.address = urllib.parse.urlsplit(server.url).netloc
        self.lock, self.number, self.failed, self.statuses = threading.Lock(), options.first, [], {}
        self.end = time.time() + 60 * options.minutes
        self.last = options.first + options.count if options.count else None

    def take(self):
        with self.lock:
            if self.failed or time.time() > self.end or (self.last is not None and self.number >= self.last):
                return None
            self.number += 1
            return self.number - 1

    def fail(self, number, why):
        with self.lock:
            self.failed.append(f'request {number} of seed {self.options.seed}: {why}')

    def send(self, number):
        method, path, headers, data, leaves = request_of(self.options.seed, number)
        connection = http.client.HTTPConnection(self.address, timeout=300)
        try:
            connection.request(method, path, data, headers)
            if leaves:
                return
            answer = connection.getresponse()
            text = answer.read()
        except (http.client.RemoteDisconnected, http.client.IncompleteRead, BrokenPipeError, ConnectionResetError) as error:
            if self.server.process.poll() is not None:
                self.fail(number, f'the server ended: {error}')
            return  # a head that is too large is answered and closed
        finally:
            connection.close()
        with self.lock:
            self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        if answer.status >= 500 and answer.status != 503:
            self.fail(number, f'{method} {path[:60]} was answered {answer.status}: {text[:200]}')
        if answer.headers.get_content_type() == 'application/json' and method != 'HEAD':
            try:
                json.loads(text)
            except ValueError:
                self.fail(number, f'{path[:60]} was answered with no JSON: {text[:200]}')

    def client(self):
        while (number := self.take()) is not None:
            try:
                self.send(number)
            except Exception as error:  # whatever a client sees is a result
                self.fail(number, f'{type(error).__name__}: {error}')

    def pressed(self):
        clients = [threading.Thread(target=self.client) for _ in range(self.options.clients)]
        for client in clients:
            client.start()
        while any(client.is_alive() for client in clients):
            for client in clients:
                client.join(5 / len(clients))
            if self.server.process.poll() is not None:
                self.fail(self.number, f'the server ended with {self.server.process.returncode}')
            with self.lock:
                print(f'\r{self.number - self.options.first} requests, {dict(sorted(self.statuses.items()))}', end='', flush=True)
        print()


def state_of(server):
    """What must stay: the text of a greedy request, and the arena's bytes."""
    status, text = server.call('/v1/completions', {'prompt': 'Once upon a time', 'max_tokens': 24, 'temperature': 0})
    planned = [line for line in server.call('/metrics')[1].splitlines() if line.startswith('headroom_arena_')]
    return status, json.loads(text)['choices'][0]['text'] if status == 200 else text, planned


def with_template(model, folder):
    """The model with a chat template: its files by links."""
    for name in os.listdir(model):
        if name != 'tokenizer_config.json':
            os.symlink(os.path.abspath(os.path.join(model, name)), os.path.join(folder, name))
    config = os.path.join(model, 'tokenizer_config.json')
    told = json.load(open(config, encoding='utf-8')) if os.path.exists(config) else {}
    with open(os.path.join(folder, 'tokenizer_config.json'), 'w', encoding='utf-8') as file:
        json.dump({**told, 'chat_template': TEMPLATE}, file)
    return folder


def main():
    sys.setrecursionlimit(20000)  # deep values
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', nargs='?', default=os.environ.get('HEADROOM'))
    parser.add_argument('--model', default=str(SHARED / 'data' / 'stories260K'))
    parser.add_argument('--minutes', type=float, default=5)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--clients', type=int, default=4)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--count', type=int)
    parser.add_argument('--memory', default='1GiB')
    options = parser.parse_args()
    if not options.program:
        parser.error('no program: give its path, or HEADROOM in the environment')
    if not os.path.isdir(options.model):
        print(f'skipped: there is no {options.model}')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        with Server(options.program, with_template(options.model, folder), home, '--memory', options.memory) as server:
            before = state_of(server)
            run = Run(server, options)
            run.pressed()
            if not run.failed and (after := state_of(server)) != before:
                run.failed.append(f'the state changed: {before} -> {after}')
            log = server.stop()
    for why in run.failed:
        print('FAIL', why)
    if run.failed:
        print(log[-20000:])
    print(f'{run.number - options.first - len(run.failed)} passed, {len(run.failed)} failed')
    sys.exit(bool(run.failed))


if __name__ == '__main__':
    main()
