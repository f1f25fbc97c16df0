#!/usr/bin/env python3
"""Checks that operands have names. Outside src/ops no code reads an input or output of a node, call or instruction by a
literal number: it uses operand(node, "gradient") and the names of positions that many ops share (result_of, token_of,
source_of, first_factor of src/ir/graph.h). In src/ops no number above 1 stands for an operand, and no number of inputs above
2 decides what a call has: an op with more than two operands names them once, as MuonInputs of src/ops/muon/plan.h does.

Usage: check_operands.py [SOURCE_DIR]     prints every breach, exit 1 when there is one
       check_operands.py --self-test      runs the checker on a small tree with known faults

doctor, which has no ops, is left out. Standard library only.
"""
import os
import re
import sys
import tempfile

import source_check

# Files outside src/ops that may read an operand by number, and what for.
NUMBERS_IN = {
    'ir/op.h': 'factors() gives the names of the first two',
}

ANYWHERE = re.compile(r'\b(?:inputs|outputs)(?:\(\))?(?:\[|\.at\()\s*\d+\s*[\])]')
LARGE = r'(?:[2-9]|\d\d+)'
MANY = r'(?:[3-9]|\d\d+)'
IN_OPS = (
    re.compile(r'\b(?:inputs|outputs)(?:\[|\.at\()\s*' + LARGE + r'\s*[\])]'),
    re.compile(r'\b(?:in|out|input|output|wants|trains|addend|accumulator|accumulate|cotangent)\(' + LARGE + r'\)'),
    re.compile(r'\b(?:contribute|set_total|set_accumulator|replace_output)\(' + LARGE + r','),
    re.compile(r'\binputs(?:\.size\(\))?\s*(?:[=!<>]=|[<>])\s*' + MANY + r'\b'),
)


def breaches(root):
    """The messages."""
    faults = []
    for path, lines in source_check.source_files(root):
        if path.startswith('doctor/') or path in NUMBERS_IN:
            continue
        own = path.startswith('ops/')
        for number, line in enumerate(lines, 1):
            code = line.split('//')[0]
            if own and any(pattern.search(code) for pattern in IN_OPS):
                faults.append(f'{path}:{number}: name the inputs of the op (as MuonInputs, src/ops/muon/plan.h)')
            if not own and ANYWHERE.search(code):
                faults.append(f'{path}:{number}: an operand by number: ask for it by name (src/ir/graph.h)')
    return faults


def self_test():
    files = {
        'ir/op.h': 'return {call.inputs[0], call.inputs[1]};\n',
        'doctor/a.cpp': 'outputs[0] = 1;\n',
        'cost/a.cpp': 'f(call.inputs[1]);\nf(node.inputs[i]);\nf(node.outputs.at(0));\nf(node.inputs.front());  // inputs[0]\n',
        'ops/x/op.cpp': 'f(inputs[1]);\nf(inputs[2]);\nf(context.input(3));\ncontext.contribute(2, d);\nif (inputs == 3) {}\n'
                        'if (inputs.size() == 2) {}\nif (inputs.size() > 3) {}\nf(inputs[XInputs::clip]);\n',
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), 'w', encoding='utf-8') as out:
                out.write(text)
        found = [fault.split(': ')[0] for fault in breaches(root)]
    expected = ['cost/a.cpp:1', 'cost/a.cpp:3'] + [f'ops/x/op.cpp:{line}' for line in (2, 3, 4, 5, 7)]
    if found != expected:
        sys.exit(f'self test: found {found}, expected {expected}')
    print('self test: ok')


def check(root):
    faults = breaches(root)
    return faults, f'{len(faults)} operands by number'


if __name__ == '__main__':
    source_check.run(self_test, check)
