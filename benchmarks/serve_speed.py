#!/usr/bin/env python3
"""Speed of `headroom serve` beside the machine's own limits, measured in the same run.

Usage: serve_speed.py HEADROOM_BINARY MACHINE_LIMITS_BINARY [--model smollm2-135m] [--weights bf16,int8,int4,int8-a8,int4-a8] [--rounds 3]
                      [--record]
Random weights, token ids as prompts, greedy. Each round measures the machine's limits, then of each kind of weights in turn, with a
server of its own: seconds from the start of the program to the first token, tokens/s of one stream, of 16 streams in sum (from the
first request to the last answer), and of a prompt of 900 tokens; and the most memory that the process held. Medians over rounds.
Limits: decoding's is the read bandwidth over the bytes of the weights; the prompt's is the GEMM rate over 2 flops per token and
weight, without the table of tokens, which the last token alone meets. --record writes benchmarks/results/serve_speed.json and .md.
Standard library only.
"""
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import task

STREAMS, NEW, PROMPT = 16, 96, 900
SHORT = 8  # tokens of the other prompts
# Of each kind of weights: bits of a weight of the layers and of the table, with the scales, f32 for each 32 codes; the techniques.
# a8: activations in 8 bits too.
KINDS = {'f32': (32, 32), 'bf16': (16, 16), 'int8': (8, 16, 'quantize-weights=int8'), 'int4': (5, 16, 'quantize-weights=int4'),
         'int8-a8': (9, 9, 'quantize-weights=int8-g32+head', 'quantize-activations=int8'),
         'int4-a8': (5, 9, 'quantize-weights=int4+head:int8-g32', 'quantize-activations=int8')}


def arguments():
    parser = task.machine_parser(__doc__, 'serve_speed', '1GiB')
    parser.add_argument('--weights', default='bf16,int8,int4')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--record', action='store_true')
    return parser.parse_args()


class Server:
    """A server of one kind of weights, on a port of its own; ended on leaving the `with`."""

    def __init__(self, options, model, weights, folder):
        self.log = os.path.join(folder, 'serve.log')
        command = [options.binary, 'serve', '--model', model, '--memory', options.memory, '--threads', options.threads,
                   '--precision', '32-true' if weights == 'f32' else 'bf16-true', '--port', 0, '--max-model-len', 1024]
        for technique in KINDS[weights][2:]:
            command += ['--technique', technique]
        self.begun = time.perf_counter()
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        self.port = self.wait_for(self.listening)
        self.wait_for(self.ready)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for(self, found):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            value = found()
            if value:
                return value
            if self.process.poll() is not None:
                break
            time.sleep(0.005)
        self.process.kill()
        with open(self.log, encoding='utf-8', errors='replace') as log:
            sys.exit(f'the server did not come up: {log.read()[-2000:]}')

    def listening(self):
        with open(self.log, encoding='utf-8', errors='replace') as log:
            for line in log:
                if line.startswith('listening on ') and line.endswith('\n'):
                    return int(line.rsplit(':', 1)[1])
        return None

    def ready(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        connection.request('GET', '/health')
        return connection.getresponse().status == 200

    def complete(self, ids, new):
        """The number of tokens of the answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=120)
        body = {'model': 'model', 'prompt': ids, 'max_tokens': new, 'temperature': 0}
        connection.request('POST', '/v1/completions', json.dumps(body), {'Content-Type': 'application/json'})
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f'{response.status}: {answer[:500]}')
        return json.loads(answer)['usage']['completion_tokens']

    def most_bytes(self):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii', errors='replace') as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith('VmHWM:'))


class Speed:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.draw = random.Random(0)
        self.model = os.path.join(folder, 'model')
        source = os.path.join(options.shared, 'data', 'models', options.model)
        self.config = task.read_json(source, 'config.json')
        task.run([options.binary, 'init', '--config', os.path.join(source, 'config.json'), '--tokenizer', 'bytes',
                  '--output-dir', self.model])
        self.parameters = json.loads(task.run([options.binary, 'plan', '--json', '--model', self.model, '--memory',
                                               '64GiB']).stdout)['parameters']
        self.table = self.config['vocab_size'] * self.config['hidden_size']

    def ids(self, count):
        return [self.draw.randrange(3, 250) for _ in range(count)]

    def layer_weights(self):
        return self.parameters - self.table * (1 if self.config.get('tie_word_embeddings') else 2)

    def weight_bytes(self, weights):
        """Bytes that a step of one token reads: those of the layers, and of the table that is the head, as they are stored."""
        layers, table = KINDS[weights][:2]
        return self.layer_weights() * layers / 8 + self.table * table / 8

    def decode(self, server, streams):
        """(tokens/s from the first request to the last answer)"""
        prompts, counts, failures = [self.ids(SHORT) for _ in range(streams)], [], []

        def ask(prompt):
            try:
                counts.append(server.complete(prompt, NEW))
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(failure)

        clients = [threading.Thread(target=ask, args=(prompt,)) for prompt in prompts]
        begun = time.perf_counter()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        seconds = time.perf_counter() - begun
        if failures:
            sys.exit(f'a request failed: {failures[0]}')
        return sum(counts) / seconds

    def measure(self, weights):
        with Server(self.options, self.model, weights, self.folder) as server:
            server.complete(self.ids(SHORT), 1)
            found = {'first_token_seconds': time.perf_counter() - server.begun}
            server.complete(self.ids(SHORT), NEW)  # the team's threads and the pages of the weights are near now
            found['one_stream'] = self.decode(server, 1)
            found['all_streams'] = self.decode(server, STREAMS)
            begun = time.perf_counter()
            server.complete(self.ids(PROMPT), 1)
            found['prefill'] = PROMPT / (time.perf_counter() - begun)
            found['most_bytes'] = server.most_bytes()
        return found

    def shares(self, found, weights, limits):
        gemm = limits['f32_flops_per_second' if weights == 'f32' else 'bf16_flops_per_second']
        found['one_stream_limit'] = limits['read_bytes_per_second'] / self.weight_bytes(weights)
        found['prefill_limit'] = gemm / (2 * self.layer_weights())
        found['one_stream_share'] = found['one_stream'] / found['one_stream_limit']
        found['prefill_share'] = found['prefill'] / found['prefill_limit']
        found['streams_ratio'] = found['all_streams'] / found['one_stream']
        return found

    def all(self):
        kinds = self.options.weights.split(',')
        rounds = {weights: [] for weights in kinds}
        limits = []
        for number in range(self.options.rounds):
            limits.append(json.loads(task.run([self.options.limits, self.options.threads]).stdout))
            for weights in kinds[number % len(kinds):] + kinds[:number % len(kinds)]:
                rounds[weights].append(self.shares(self.measure(weights), weights, limits[-1]))
        medians = {weights: {key: statistics.median(r[key] for r in found) for key in found[0]}
                   for weights, found in rounds.items()}
        machine = {key: statistics.median(each[key] for each in limits) for key in limits[0]}
        return {'model': self.options.model, 'parameters': self.parameters, 'threads': self.options.threads,
                'memory': self.options.memory, 'limits': machine, 'medians': medians, 'rounds': rounds}


def table(options, record):
    lines = [f'{task.day_and_machine()}. {record["model"]}, {record["parameters"]} weights (random), {record["threads"]} '
             f'threads, `--memory {record["memory"]}`, medians of {options.rounds} rounds. `benchmarks/serve_speed.py` says how.', '',
             f'| weights | one stream, tokens/s | share of read bandwidth | {STREAMS} streams in sum | times one | prompt of {PROMPT}, tokens/s '
             '| share of GEMM rate | start to first token, s | peak, MiB |', '|---|---|---|---|---|---|---|---|---|']
    for weights, m in record['medians'].items():
        lines.append(f'| {weights} | {m["one_stream"]:.0f} | {100 * m["one_stream_share"]:.0f} % | {m["all_streams"]:.0f} | '
                     f'{m["streams_ratio"]:.1f} | {m["prefill"]:.0f} | {100 * m["prefill_share"]:.0f} % | '
                     f'{m["first_token_seconds"]:.2f} | {m["most_bytes"] / 2 ** 20:.0f} |')
    return '\n'.join(lines + ['', f'The machine then: {task.describe_limits(record["limits"])}.']) + '\n'


def main():
    options = arguments()
    options.binary = os.path.abspath(options.binary)
    folder = tempfile.mkdtemp(prefix='serve_speed.')
    try:
        record = Speed(options, folder).all()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = table(options, record)
    print(text, end='')
    if options.record:
        with open(os.path.join(options.results, options.name + '.md'), 'w', encoding='utf-8') as out:
            out.write(text)
        with open(os.path.join(options.results, options.name + '.json'), 'w', encoding='utf-8') as out:
            json.dump(record, out, indent=1)
            out.write('\n')


if __name__ == '__main__':
    main()
