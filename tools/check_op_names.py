#!/usr/bin/env python3
"""Checks that nothing outside src/ops asks what an op is by its name: others ask for traits (kind, product, cost class,
operands by name, src/ir/op.h), so that a new op of a known trait is treated as its like.

Usage: check_op_names.py [SOURCE_DIR]     prints every breach, exit 1 when there is one
       check_op_names.py --self-test      runs the checker on a small tree with known faults

An op's name is written into text, and is the key of its kernels and of its rates in a profile: the files of WRITERS do
that. They compare it neither. Standard library only.
"""
import os
import re
import sys
import tempfile

import source_check

WRITERS = {
    'ir/op.h': 'declares op_name', 'ir/op.cpp': 'defines it',
    'ir/graph.cpp': 'a message', 'ir/print.cpp': 'graph text', 'ir/block_signature.cpp': 'the text of a block',
    'autodiff/differentiate.cpp': 'a message', 'passes/packing.cpp': 'a message', 'passes/shard.cpp': 'messages',
    'planner/emit.cpp': 'a message', 'plan/plan_text.cpp': 'plan text', 'plan/storage_spans.cpp': 'what a place holds',
    'plan/step_memory.cpp': 'the op at the peak', 'train/operation_times.cpp': 'times by op',
    'runtime/executor.cpp': 'the key of a kernel', 'runtime/calibrate/timed_call.cpp': 'the key of a kernel',
    'cost/predict.cpp': 'the key of a rate',
}

CALL = r'op_name\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)'
BREACHES = (
    (re.compile(r'\bop_?(?:->|\.)name\(\)'), 'op_name() gives the name, and to WRITERS only'),
    (re.compile(CALL + r'\s*(?:[=!]=|[.<>])'), 'a name is not a trait: ask for one (src/ir/op.h)'),
    (re.compile(r'(?:[=!]=)\s*' + CALL), 'a name is not a trait: ask for one (src/ir/op.h)'),
    (re.compile(r'(?:[=!]=)\s*&?\s*find_op\('), 'a name is not a trait: ask for one (src/ir/op.h)'),
)
USE = re.compile(r'\bop_name\(')


def breaches(root):
    """The messages, and the number of uses of op_name."""
    faults, uses = [], 0
    for path, lines in source_check.source_files(root):
        if path.startswith('ops/'):
            continue
        for number, line in enumerate(lines, 1):
            uses += len(USE.findall(line))
            for breach, fault in BREACHES:
                if breach.search(line):
                    faults.append(f'{path}:{number}: {fault}')
            if USE.search(line) and path not in WRITERS:
                faults.append(f'{path}:{number}: op_name() in a file that WRITERS (tools/check_op_names.py) does not list')
    return faults, uses


def self_test():
    files = {
        'ops/add/op.cpp': 'if (op_name(*node.op) == "add") return op.name();\n',  # an op's own folder may
        'ir/print.cpp': 'text(op_name(*node.op));\nif (op_name(*graph.node(id).op) == "cast") return;\n',
        'plan/plan_text.cpp': 'if ("cast" == op_name(op)) return;\nif (op_name(op).starts_with("x")) return;\n',
        'passes/new.cpp': 'fail("{}", op_name(op));\nif (node.op->name() == "cast") return;\nif (node.op == &find_op("add")) return;\n'
                          'node.op = &find_op("add");\n',
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), 'w', encoding='utf-8') as out:
                out.write(text)
        faults, uses = breaches(root)
    found = [fault.split(': ')[0] for fault in faults]
    expected = ['ir/print.cpp:2', 'passes/new.cpp:1', 'passes/new.cpp:2', 'passes/new.cpp:3', 'plan/plan_text.cpp:1',
                'plan/plan_text.cpp:2']
    if found != expected or uses != 5:
        sys.exit(f'self test: found {found} and {uses} uses, expected {expected}')
    print('self test: ok')


def check(root):
    faults, uses = breaches(root)
    return faults, f'{uses} names of ops written, {len(faults)} breaches'


if __name__ == '__main__':
    source_check.run(self_test, check)
