"""What the benchmark scripts of this folder share: a task of random tokens, a program run to its end, the day and the machine."""
import argparse
import datetime
import json
import os
import random
import subprocess
import sys


def machine_parser(description, name, memory, memory_help=None):
    """A parser with what a benchmark beside the machine's limits takes; `name` is that of its record."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument('binary')
    parser.add_argument('limits')
    parser.add_argument('--shared', default=os.path.join(here, '..', '..', 'shared'))
    parser.add_argument('--model', default='smollm2-135m')
    parser.add_argument('--memory', default=memory, help=memory_help)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--results', default=os.path.join(here, 'results'))
    parser.add_argument('--name', default=name)
    return parser


def vocabulary_of(config):
    """The number of token ids of a config.json."""
    with open(config, encoding='utf-8') as text:
        return json.load(text)['vocab_size']


def write_random_rows(path, vocabulary, count, length):
    """`count` rows of `length` random token ids that are their own labels; the same for the same arguments."""
    draw = random.Random(0)
    with open(path, 'w', encoding='utf-8') as out:
        for _ in range(count):
            ids = [draw.randrange(vocabulary) for _ in range(length)]
            out.write(json.dumps({'input_ids': ids, 'labels': ids}) + '\n')


def run(command, accepted=(0,)):
    """Runs a command; ends this script with what it said when its exit status is not among those accepted."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors='replace')
    if done.returncode not in accepted:
        sys.exit(f'exit {done.returncode}: {done.stderr[-2000:]}')
    return done


def read_json(*path):
    """A JSON file."""
    with open(os.path.join(*path), encoding='utf-8') as text:
        return json.load(text)


def read_metrics(out):
    """The lines of a run's metrics.jsonl."""
    with open(os.path.join(out, 'metrics.jsonl'), encoding='utf-8') as text:
        return [json.loads(line) for line in text]


def read_steps(out):
    """Those of the lines that are steps: loss, seconds, tokens."""
    return [line for line in read_metrics(out) if 'loss' in line]


def day_and_machine():
    """What every record begins with."""
    return f'{datetime.date.today()}, {(processors() or ["unknown processor"])[0]}, {os.cpu_count()} cores'


def describe_limits(limits):
    """What the program machine_limits measured, for a sentence."""
    return (f'fp32 {limits["f32_flops_per_second"] / 1e9:.0f} and bf16 {limits["bf16_flops_per_second"] / 1e9:.0f} GFLOP/s, read '
            f'{limits["read_bytes_per_second"] / 1e9:.1f} and copy {limits["copy_bytes_per_second"] / 1e9:.1f} GB/s')


def processors():
    """The name of each processor that the system shows."""
    with open('/proc/cpuinfo', encoding='utf-8') as text:
        return [line.split(':', 1)[1].strip() for line in text if line.startswith('model name')]
