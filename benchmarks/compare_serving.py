#!/usr/bin/env python3
"""`headroom serve` beside other servers on one CPU: completed streams a second and peak memory, all inside the same memory cgroup.

Usage: compare_serving.py HEADROOM_BINARY --memory 3GiB [--openvino-python PYTHON] [--vllm-python PYTHON] [--llama-server PROGRAM |
       --llama-python PYTHON] [--model qwen2.5-0.5b] [--weights bf16|q8_0] [--rounds 3]
A model with random weights answers the same requests on every side: token ids as prompts, lengths drawn once, answers of a fixed
length (end-of-text tokens ignored), greedy, --streams of them under way at once, the next as soon as one ends.
  headroom   its server, --memory as budget; `headroom bench-serve` beside it asks.
  vLLM       its OpenAI server, with a pool of 1 GiB; the same client.
  llama.cpp  its llama-server with the GGUF that `headroom quantize` writes, a slot of the same context per stream, without its cache of
             prompts on the host; the same client. --llama-python runs the same server out of PyPI's xllamacpp (serving_peer_llama.py).
  OpenVINO   GenAI's ContinuousBatchingPipeline, called in its own process without HTTP (serving_peer_openvino.py): it saves a client's work.
With --weights q8_0 headroom and llama.cpp serve the same GGUF of 8-bit blocks; the others have none. llama.cpp also rounds activations to
8 bits there; `--technique quantize-activations=int8` makes headroom do so.
Every side starts in a cgroup of --limit bytes (what the slowest starter needs; a budget is headroom's own bound, the peers' is the
kernel's alone). Its peak is the largest resident set of its processes, sampled every 20 ms. Sides run in turns, medians over rounds; the ratio is
within a round. Writes benchmarks/results/compare_serving.json and .md with three rounds or more. Root for the cgroup; standard library only.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import task

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'tests', 'robustness'))
from memory_group import MemoryGroup  # noqa: E402  pylint: disable=wrong-import-position

GIB = 2 ** 30
PROMPTS, ANSWERS = (32, 384), (32, 128)  # tokens of a request, uniform
CONTEXT = 1024
LEAST_ROUNDS = 3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--shared', default=os.path.join(HERE, '..', '..', 'shared'))
    parser.add_argument('--model', default='qwen2.5-0.5b')
    parser.add_argument('--tokenizer', default='qwen2.5', help='folder of SHARED/data/tokenizers')
    parser.add_argument('--memory', default='3GiB', help="headroom's budget")
    parser.add_argument('--limit', type=int, default=6 * GIB, help='of every cgroup, bytes')
    parser.add_argument('--openvino-python')
    parser.add_argument('--vllm-python')
    llama = parser.add_mutually_exclusive_group()
    llama.add_argument('--llama-server')
    llama.add_argument('--llama-python')
    parser.add_argument('--weights', choices=('bf16', 'q8_0'), default='bf16')
    parser.add_argument('--technique', action='append', default=[], help="headroom's, NAME=VALUE; repeatable")
    parser.add_argument('--requests', type=int, default=48)
    parser.add_argument('--streams', type=int, default=16)
    parser.add_argument('--rounds', type=int, default=LEAST_ROUNDS)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--port', type=int, default=8765)
    parser.add_argument('--work', default='build/serving')
    parser.add_argument('--results', default=os.path.join(HERE, 'results'))
    parser.add_argument('--name', default='compare_serving')
    options = parser.parse_args()
    if options.weights != 'bf16' and (options.openvino_python or options.vllm_python):
        parser.error('OpenVINO and vLLM are compared with bf16')
    return options


class Watched:
    """A command inside a cgroup, with the largest sum of its processes' resident sets."""

    def __init__(self, command, limit, log, environment=None):
        self.group = MemoryGroup(limit, 'headroom-serving')
        if not self.group.path:
            sys.exit('no memory cgroup can be made: root is needed')
        self.most, self.ends, self.log = 0, False, log
        with open(log, 'wb') as out:
            self.process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out, start_new_session=True,
                                            env=dict(os.environ, **(environment or {})),
                                            preexec_fn=lambda: MemoryGroup.write(self.group.path, 'cgroup.procs', os.getpid()))
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    def watch(self):
        while not self.ends:
            total = 0
            with open(os.path.join(self.group.path, 'cgroup.procs'), encoding='ascii') as group:
                for pid in group.read().split():
                    try:
                        with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as status:
                            total += next((int(line.split()[1]) << 10 for line in status if line.startswith('VmRSS:')), 0)
                    except OSError:
                        pass
            self.most = max(self.most, total)
            time.sleep(0.02)

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as text:
            return text.read()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 15)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, 9)
                self.process.wait()
        self.ends = True
        self.watcher.join()
        self.group.close()


class Comparison:
    def __init__(self, options):
        self.options = options
        self.work = os.path.abspath(options.work)
        self.model = os.path.join(self.work, 'model')
        self.gguf = os.path.join(self.work, 'gguf')
        self.rows = os.path.join(self.work, 'requests.jsonl')

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        data = os.path.join(self.options.shared, 'data')
        task.run([self.options.binary, 'init', '--config', os.path.join(data, 'models', self.options.model, 'config.json'), '--tokenizer',
                  os.path.join(data, 'tokenizers', self.options.tokenizer, 'tokenizer.json'), '--dtype', 'bfloat16', '--output-dir', self.model])
        if self.llama() or self.options.weights != 'bf16':
            task.run([self.options.binary, 'quantize', '--model', self.model, '--weights', self.options.weights, '--output-dir', self.gguf])
        draw = random.Random(0)
        with open(self.rows, 'w', encoding='utf-8') as out:
            for _ in range(self.options.requests):
                ids = [draw.randrange(1000, 100000) for _ in range(draw.randint(*PROMPTS))]
                row = {'prompt': ids, 'max_tokens': draw.randint(*ANSWERS), 'temperature': 0, 'ignore_eos': True}
                out.write(json.dumps(row) + '\n')

    def sides(self):
        found = {'headroom': self.run_headroom}
        if self.options.openvino_python:
            found['OpenVINO GenAI'] = self.run_openvino
        if self.options.vllm_python:
            found['vLLM'] = self.run_vllm
        if self.llama():
            found['llama.cpp'] = self.run_llama
        return found

    def run_headroom(self):
        model = self.model if self.options.weights == 'bf16' else self.gguf
        return self.run_server([self.options.binary, 'serve', '--model', model, '--memory', self.options.memory, '--precision', 'bf16-true',
                                '--threads', self.options.threads, '--max-model-len', CONTEXT, '--max-num-seqs', self.options.streams,
                                '--port', self.options.port, '--quiet', *(word for setting in self.options.technique for word in ('--technique', setting))])

    def run_vllm(self):
        return self.run_server([self.options.vllm_python, '-m', 'vllm.entrypoints.openai.api_server', '--model', self.model, '--dtype', 'bfloat16', '--max-model-len', CONTEXT, '--max-num-seqs',
                                self.options.streams, '--no-enable-prefix-caching', '--port', self.options.port],
                               {'VLLM_CPU_KVCACHE_SPACE': '1', 'HF_HUB_OFFLINE': '1', 'VLLM_NO_USAGE_STATS': '1'})

    def llama(self):
        """The command of llama.cpp's server, [] where it takes no part."""
        if self.options.llama_python:
            return [self.options.llama_python, os.path.join(HERE, 'serving_peer_llama.py')]
        return [self.options.llama_server] if self.options.llama_server else []

    def run_llama(self):
        return self.run_server(self.llama() + ['--model', os.path.join(self.gguf, 'model.gguf'), '--threads', self.options.threads,
                                '--parallel', self.options.streams, '--ctx-size', CONTEXT * self.options.streams, '--cache-ram', 0,
                                '--host', '127.0.0.1', '--port', self.options.port])

    def run_server(self, command, environment=None):
        begun = time.perf_counter()
        server = Watched(command, self.options.limit, os.path.join(self.work, 'server.log'), environment)
        try:
            self.wait_for(server)
            ready = time.perf_counter() - begun
            report = os.path.join(self.work, 'load.json')
            task.run([self.options.binary, 'bench-serve', '--base-url', f'http://127.0.0.1:{self.options.port}', '--dataset', self.rows,
                      '--num-prompts', self.options.requests, '--max-concurrency', self.options.streams, '--num-warmups', 2, '--quiet', '--json', report],
                     accepted=(0, 1))
            figures = task.read_json(report)
        finally:
            server.end()
        return {'seconds': figures['duration'], 'completed': figures['completed'], 'lost': self.options.requests - figures['completed'],
                'tokens': figures['total_output_tokens'], 'peak_bytes': server.most, 'start_seconds': ready}

    def wait_for(self, server):
        end = time.monotonic() + 400
        while time.monotonic() < end and server.process.poll() is None:
            try:
                with urllib.request.urlopen(f'http://127.0.0.1:{self.options.port}/health', timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        sys.exit(f'the server did not come up: {server.said()[-3000:]}')

    def run_openvino(self):
        peer = Watched([self.options.openvino_python, os.path.join(HERE, 'serving_peer_openvino.py'), self.model, self.rows, '--streams',
                        self.options.streams, '--threads', self.options.threads, '--converted', os.path.join(self.work, 'openvino')],
                       self.options.limit, os.path.join(self.work, 'peer.log'))
        try:
            peer.process.wait(1200)
        finally:
            peer.end()
        lines = [line for line in peer.said().splitlines() if line.startswith('{')]
        if not lines:
            sys.exit(f'OpenVINO failed: {peer.said()[-3000:]}')
        return dict(json.loads(lines[-1]), peak_bytes=peer.most)

    def convert(self):
        """OpenVINO's own form of the model, made once, outside the cgroup."""
        if self.options.openvino_python:
            task.run([self.options.openvino_python, os.path.join(HERE, 'serving_peer_openvino.py'), self.model, self.rows, '--converted',
                      os.path.join(self.work, 'openvino'), '--convert'])

    def all(self):
        rounds = []
        for number in range(self.options.rounds):
            sides = list(self.sides().items())
            found = {}
            for name, measure in sides[number % len(sides):] + sides[:number % len(sides)]:
                found[name] = measure()
                found[name]['streams_per_second'] = found[name]['completed'] / found[name]['seconds']
                print(f'{name}: {found[name]}', flush=True)
            rounds.append(found)
        return rounds


def summary(rounds):
    rows = {}
    for name in rounds[0]:
        runs = [each[name] for each in rounds]
        ratios = [each['headroom']['streams_per_second'] / each[name]['streams_per_second'] for each in rounds if each[name]['completed']]
        rows[name] = {key: statistics.median(run[key] for run in runs) for key in ('streams_per_second', 'peak_bytes', 'start_seconds')}
        rows[name] |= {'tokens_per_second': statistics.median(run['tokens'] / run['seconds'] for run in runs), 'lost': sum(run['lost'] for run in runs),
                       'headroom_to_it': statistics.median(ratios), 'headroom_to_it_range': [min(ratios), max(ratios)]}
    return rows


def table(options, rows):
    lines = [f'{task.day_and_machine()}. {options.model} with random weights in {options.weights}, {options.threads} threads; {options.requests} requests of {PROMPTS[0]} to '
             f'{PROMPTS[1]} tokens, answers of {ANSWERS[0]} to {ANSWERS[1]}, {options.streams} at once; every side in a memory cgroup of {options.limit / GIB:g} GiB, '
             f'`{" ".join(["--memory", options.memory, *("--technique " + setting for setting in options.technique)])}`. {options.rounds} alternating rounds, medians. `benchmarks/compare_serving.py` says how.', '',
             '| side | streams/s | tokens/s | headroom is | peak resident, GiB | lost | start, s |', '|---|---|---|---|---|---|---|']
    for name, row in rows.items():
        low, high = row['headroom_to_it_range']
        ratio = '' if name == 'headroom' else f'{row["headroom_to_it"]:.2f} x ({low:.2f} to {high:.2f})'
        lines.append(f'| {name} | {row["streams_per_second"]:.2f} | {row["tokens_per_second"]:.0f} | {ratio} | {row["peak_bytes"] / GIB:.2f} | {row["lost"]} | '
                     f'{row["start_seconds"]:.1f} |')
    return '\n'.join(lines) + '\n'


def main():
    options = arguments()
    comparison = Comparison(options)
    comparison.prepare()
    comparison.convert()
    rounds = comparison.all()
    rows = summary(rounds)
    text = table(options, rows)
    print(text)
    if options.rounds >= LEAST_ROUNDS:
        path = os.path.join(options.results, options.name)
        with open(path + '.md', 'w', encoding='utf-8') as out:
            out.write(text)
        with open(path + '.json', 'w', encoding='utf-8') as out:
            json.dump({'machine': task.day_and_machine(), 'model': options.model, 'weights': options.weights, 'summary': rows, 'rounds': rounds}, out, indent=1)
            out.write('\n')


if __name__ == '__main__':
    main()
