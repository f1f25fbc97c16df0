#!/usr/bin/env python3
"""Checks that nothing outside src/ops asks what an op is by its name: others ask for traits (kind, product, cost class,
operands by name, src/ir/op.h), so that a new op of a known trait is treated as its like.

Usage: check_op_names.py [SOURCE_DIR]     prints every breach, exit 1 when there is one
       check_op_names.py --self-test      runs the checker on a small tree with known faults

An op's name is written into text: the files of WRITERS do that. They compare it neither. The names of ops are read from
src/ops; a comparison with the text of one is a breach wherever the text comes from, unless OTHER_WORDS says what else the word
means there. doctor, which has no ops, may use any word. Standard library only.
"""
import os
import re
import sys
import tempfile

import source_check

WRITERS = {
    'ir/op.h': 'declares op_name', 'ir/op.cpp': 'defines it',
    'ir/graph.cpp': 'a message', 'ir/print.cpp': 'graph text', 'ir/block_signature.cpp': 'the bytes that stand for a block',
    'autodiff/differentiate.cpp': 'a message', 'passes/packing.cpp': 'a message', 'passes/shard.cpp': 'messages',
    'planner/emit.cpp': 'a message', 'plan/plan.cpp': 'a message', 'plan/plan_text.cpp': 'plan text', 'plan/storage_spans.cpp': 'what a place holds',
    'plan/step_memory.cpp': 'the op at the peak', 'train/operation_times.cpp': 'times by op',
}

# Words of other things that are also names of ops.
OTHER_WORDS = {
    'formats/hf_config_rope.cpp': {'linear': 'a scaling of positions'},
    'models/family.cpp': {'gelu': 'an activation in config.json'},
    'train/schedule.cpp': {'linear': 'a schedule of the learning rate'},
    'planner/techniques/lora.cpp': {'dropout': 'a setting'},
}

CALL = r'op_name\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)'
BREACHES = (
    (re.compile(r'\bop_?(?:->|\.)name\(\)'), 'op_name() gives the name, and to WRITERS only'),
    (re.compile(CALL + r'\s*(?:[=!]=|[.<>])'), 'a name is not a trait: ask for one (src/ir/op.h)'),
    (re.compile(r'(?:[=!]=)\s*' + CALL), 'a name is not a trait: ask for one (src/ir/op.h)'),
    (re.compile(r'(?:[=!]=)\s*&?\s*find_op\('), 'a name is not a trait: ask for one (src/ir/op.h)'),
)
USE = re.compile(r'\bop_name\(')
# An op's own class, or its row of a table of ops.
NAMED = (re.compile(r'\bname\(\) const override \{ return "(\w+)"; \}'), re.compile(r'^\s*\{"(\w+)", '))
COMPARED = re.compile(r'[=!]=\s*"(\w+)"|"(\w+)"(?:sv)?\s*[=!]=')
CONSTANT = re.compile(r'\bconstexpr std::string_view \w+\s*(?:=\s*|\{)"(\w+)"')


def op_names(root):
    """The names of all ops."""
    names = set()
    for path, lines in source_check.source_files(os.path.join(root, 'ops')):
        if path.endswith('/op.cpp'):
            names |= {name for line in lines for pattern in NAMED for name in pattern.findall(line)}
    return names


def compared_names(path, line, names):
    """The names of ops with which the line compares something."""
    if path.startswith('doctor/'):
        return []
    words = [a or b for a, b in COMPARED.findall(line)]
    if path != 'ir/graph.h':  # which declares kLoop
        words += CONSTANT.findall(line)
    return [word for word in words if word in names and word not in OTHER_WORDS.get(path, {})]


def breaches(root):
    """The messages, and the number of uses of op_name."""
    faults, uses, names = [], 0, op_names(root)
    for path, lines in source_check.source_files(root):
        if path.startswith('ops/'):
            continue
        for number, line in enumerate(lines, 1):
            uses += len(USE.findall(line))
            for breach, fault in BREACHES:
                if breach.search(line):
                    faults.append(f'{path}:{number}: {fault}')
            for name in compared_names(path, line, names):
                faults.append(f'{path}:{number}: "{name}" is an op: a name is not a trait, ask for one (src/ir/op.h)')
            if USE.search(line) and path not in WRITERS:
                faults.append(f'{path}:{number}: op_name() in a file that WRITERS (tools/check_op_names.py) does not list')
    return faults, uses


def self_test():
    files = {
        'ops/linear/op.cpp': 'std::string_view name() const override { return "linear"; }\n',
        'cost/rates.cpp': 'bool wide(std::string_view op) { return op == "linear" || op == "other"; }\nconstexpr std::string_view kKey = "linear";\n'
                          'rate("linear");\n',
        'train/schedule.cpp': 'if (options.type == "linear") return;\n',  # another word
        'doctor/words.cpp': 'if (word == "linear") return;\n',
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
    expected = ['cost/rates.cpp:1', 'cost/rates.cpp:2', 'ir/print.cpp:2', 'passes/new.cpp:1', 'passes/new.cpp:2', 'passes/new.cpp:3', 'plan/plan_text.cpp:1',
                'plan/plan_text.cpp:2']
    if found != expected or uses != 5:
        sys.exit(f'self test: found {found} and {uses} uses, expected {expected}')
    print('self test: ok')


def check(root):
    faults, uses = breaches(root)
    return faults, f'{uses} names of ops written, {len(faults)} breaches'


if __name__ == '__main__':
    source_check.run(self_test, check)
