#!/usr/bin/env python3
"""Checks the includes between the modules of src/ against the table of allowed edges.

Usage: check_layers.py [SOURCE_DIR]     prints every forbidden include as file:line, exit 1 when there is one
       check_layers.py --self-test      runs the checker on a small tree with known faults

An include is an edge from the folder of the file to the first part of the quoted path. A module may always include
itself and base. src/ops/cpu and the cpu*.cpp files of the op folders are the layer "kernels": rules of ops link no
library, kernels do. A header named *scratch.h is a booking formula, shared by rules and kernels, and belongs to the
rules. "headroom" stands for the public headers in include/. Standard library only.
"""
import os
import re
import sys
import tempfile

ALLOWED = {
    'base': '',
    'formats': '',
    'tokenizer': 'formats',
    'ir': '',
    'ops': 'ir',
    'kernels': 'ir ops',
    'models': 'ir ops formats',
    'autodiff': 'ir ops',
    'optim': 'ir ops',
    'memory': 'ir ops',
    'cost': 'ir ops formats',
    'plan': 'ir memory formats',
    'passes': 'ir ops memory autodiff cost',
    'planner': 'passes memory cost autodiff optim plan ir ops',
    'device': 'ir ops kernels',
    'comm': 'device',
    'runtime': 'plan device comm ir ops',
    'data': 'tokenizer formats',
    'generate': 'runtime plan tokenizer',
    'train': 'planner runtime models data formats plan generate',
    'serve': 'planner runtime models data formats plan generate',
    'doctor': 'planner passes optim models formats plan',
    'report': 'plan',
    'api': '*',
    'cli': '*',
}
# Only the command line and the public API may include these.
TOPS = ('train', 'serve', 'doctor', 'report', 'api', 'cli')

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def layer(path):
    """The layer of a path relative to src/."""
    parts = path.split('/')
    if parts[0] == 'ops' and len(parts) > 2:
        name = parts[-1]
        if name.endswith('scratch.h'):
            return 'ops'
        if parts[1] == 'cpu' or re.match(r'(cpu|cuda)[_.]', name):
            return 'kernels'
    return parts[0]


def is_private_header(source, target):
    """A header beside a kernel, in the kernel's own op folder, is part of that folder."""
    return target.startswith('ops/') and os.path.dirname(source) == os.path.dirname(target)


def edges(root):
    """(file, line, including layer, included path) for every quoted include below root."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if not name.endswith(('.h', '.cpp', '.cu', '.cuh')):
                continue
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root).replace(os.sep, '/')
            with open(path, encoding='utf-8') as text:
                for number, line in enumerate(text, 1):
                    found = INCLUDE.match(line)
                    if found:
                        yield relative, number, layer(relative), found.group(1)


def forbidden(root):
    """The messages for all forbidden edges, and the number of edges looked at."""
    faults, count = [], 0
    for path, number, source, included in edges(root):
        if '/' not in included:
            faults.append(f'{path}:{number}: "{included}": write the path from src/, as in "module/{included}"')
            continue
        count += 1
        target = layer(included)
        where = f'{path}:{number}: {source} -> {target} ("{included}")'
        if source not in ALLOWED:
            faults.append(f'{where}: the module "{source}" is not in the table of tools/check_layers.py')
        elif target == 'headroom':
            if source not in ('api', 'cli'):
                faults.append(f'{where}: only api and cli may include the public headers')
        elif target not in ALLOWED:
            faults.append(f'{where}: there is no module "{target}"')
        elif target in (source, 'base') or is_private_header(path, included):
            continue
        elif ALLOWED[source] == '*':
            if target == 'cli':
                faults.append(f'{where}: nothing may include cli')
        elif target not in ALLOWED[source].split():
            allowed = ALLOWED[source] or 'nothing'
            why = 'only cli and api may include it' if target in TOPS else f'{source} may include base and {allowed}'
            faults.append(f'{where}: {why}')
    return faults, count


def self_test():
    files = {
        'base/a.h': '',
        'ir/graph.h': '#include "base/a.h"\n',
        'ops/registry.h': '#include "ir/graph.h"\n#include <vector>\n',
        'ops/cpu/kernel.h': '#include "ops/registry.h"\n',
        'ops/add/cpu.cpp': '#include "ops/cpu/kernel.h"\n#include "ops/add/scratch.h"\n',
        'ops/add/op.cpp': '  #  include "ops/cpu/kernel.h"\n',          # rules may not see kernels
        'ops/add/scratch.h': '#include "device/device.h"\n',            # ops may not see the device
        'ops/cpu/gemm_scratch.h': '#include "ir/graph.h"\n',
        'ops/gemm/op.cpp': '#include "ops/cpu/gemm_scratch.h"\n',
        'device/device.h': '#include "ops/cpu/kernel.h"\n',
        'planner/p.cpp': '#include "device/device.h"\n#include "cli/main.h"\n',
        'runtime/r.cpp': '#include "planner/p.h"\n#include "r.h"\n',
        'cli/main.h': '#include "train/t.h"\n#include "headroom/headroom.h"\n',
        'train/t.h': '#include "nowhere/x.h"\n',
        'odd/o.h': '#include "base/a.h"\n',
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), 'w', encoding='utf-8') as out:
                out.write(text)
        found = sorted(fault.split(': ')[0] for fault in forbidden(root)[0])
    expected = ['odd/o.h:1', 'ops/add/op.cpp:1', 'ops/add/scratch.h:1', 'planner/p.cpp:1', 'planner/p.cpp:2',
                'runtime/r.cpp:1', 'runtime/r.cpp:2', 'train/t.h:1']
    if found != expected:
        sys.exit(f'self test: found {found}, expected {expected}')
    print('self test: ok')


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, '..', 'src')
    if not os.path.isdir(root):
        sys.exit(f'no such directory: {root}')
    faults, count = forbidden(root)
    print('\n'.join(faults + [f'{count} includes, {len(faults)} forbidden']))
    return sys.exit(1 if faults else 0)


if __name__ == '__main__':
    main()
