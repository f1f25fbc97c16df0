#!/usr/bin/env python3
"""Checks the includes between the modules of src/ against the table of allowed edges.

Usage: check_layers.py [SOURCE_DIR]     prints every forbidden include as file:line, exit 1 when there is one
       check_layers.py --self-test      runs the checker on a small tree with known faults

An include is an edge from the folder of the file to the first part of the path. A module may always include itself and
base. The op folders hold two layers: "ops" are the rules, which link no library, and "kernels" what computes. Kernels are
src/ops/cpu and src/ops/cuda, the files cpu*.cpp and cuda*, and those headers of the op folders that no rule includes, directly or through another
header. Files named *scratch.h or *scratch.cpp are booking formulas, and backend and capabilities what planning knows of a
backend: kernels share them, but they belong to the rules. "headroom"
stands for the public headers in include/. Outside libraries in LIBRARIES are open to the named layers only. Standard
library only.
"""
import os
import re
import sys
import tempfile

import source_check

ALLOWED = {
    'base': '',
    'team': '',
    'formats': '',
    'jinja': '',
    'tokenizer': 'formats',
    'grammar': 'formats tokenizer',
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
    'runtime': 'plan device comm cost ir ops',
    'data': 'tokenizer formats jinja',
    'generate': 'runtime plan tokenizer grammar',
    'options': 'passes',
    'weights': 'planner passes runtime models data tokenizer formats plan',
    'train': 'options weights planner passes optim runtime device models data formats plan',
    'engine': 'options weights train planner passes memory cost runtime device models data tokenizer formats plan generate grammar',
    'arguments': 'engine options train planner optim passes data device',
    'serve': 'engine plan generate grammar tokenizer data formats jinja',
    'doctor': 'planner passes optim models formats plan',
    'report': 'plan',
    'bench_serve': 'report formats',
    'api': '*',
    'cli': 'engine arguments report doctor serve bench_serve weights train plan tokenizer formats',
}
# Only the command line and the public API may include these.
TOPS = ('train', 'engine', 'arguments', 'serve', 'bench_serve', 'doctor', 'report', 'api', 'cli')

# First part of an include path of an outside library: the layers that may use it.
LIBRARIES = {
    'dnnl.h': 'kernels', 'dnnl.hpp': 'kernels', 'oneapi': 'kernels', 'hwy': 'kernels', 'omp.h': 'base', 'mpi.h': 'comm',
    'cuda_runtime.h': 'kernels device', 'cublasLt.h': 'kernels', 'cudnn.h': 'kernels', 'cudnn_frontend.h': 'kernels', 'cuda_shim': 'kernels',
    'yaml-cpp': 'formats', 'boost': 'serve bench_serve', 'CLI': 'cli arguments api',
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def read_includes(root):
    """{path relative to root: [(line, included path, quoted?)]}"""
    found = {}
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if not name.endswith(('.h', '.cpp', '.cu', '.cuh')):
                continue
            path = os.path.join(folder, name)
            rows = found[os.path.relpath(path, root).replace(os.sep, '/')] = []
            with open(path, encoding='utf-8') as text:
                for number, line in enumerate(text, 1):
                    match = INCLUDE.match(line)
                    if match:
                        rows.append((number, match.group(1) or match.group(2), bool(match.group(1))))
    return found


def in_op_folder(path):
    parts = path.split('/')
    return parts[0] == 'ops' and len(parts) > 2 and parts[1] not in ('cpu', 'cuda')


def is_booking(path):
    return re.search(r'(scratch|/backend|/capabilities)\.(h|cpp)$', path) is not None


def is_kernel_source(path):
    return in_op_folder(path) and not is_booking(path) and re.match(r'(cpu|cuda)[_.]', path.split('/')[-1]) is not None


def rule_headers(includes):
    """The headers of op folders that rules include, directly or through such headers."""
    reached = set()
    waiting = [path for path in includes if in_op_folder(path) and not path.endswith('.h') and not is_kernel_source(path)]
    while waiting:
        for _, included, _ in includes.get(waiting.pop(), ()):
            if in_op_folder(included) and included not in reached:
                reached.add(included)
                waiting.append(included)
    return reached


def layer(path, rules):
    """The layer of a path relative to src/; `rules` are the headers of op folders that belong to the rules."""
    parts = path.split('/')
    if parts[0] != 'ops' or len(parts) < 3 or is_booking(path):
        return parts[0]
    if parts[1] in ('cpu', 'cuda') or is_kernel_source(path):
        return 'kernels'
    return 'kernels' if path.endswith('.h') and path not in rules else 'ops'


def fault_of(source, target):
    """Why layer `source` may not include module `target`, or None."""
    if source not in ALLOWED:
        return f'the module "{source}" is not in the table of tools/check_layers.py'
    if target == 'headroom':
        return None if source in ('api', 'cli') else 'only api and cli may include the public headers'
    if target not in ALLOWED:
        return f'there is no module "{target}"'
    if target in (source, 'base'):
        return None
    if ALLOWED[source] == '*':
        return 'nothing may include cli' if target == 'cli' else None
    if target in ALLOWED[source].split():
        return None
    if target in TOPS:
        return 'only cli and api may include it'
    return f'{source} may include base and {ALLOWED[source] or "nothing else"}'


def forbidden(root):
    """The messages for all forbidden edges, and the number of edges between modules."""
    includes = read_includes(root)
    rules = rule_headers(includes)
    faults, count = [], 0
    for path, rows in includes.items():
        source = layer(path, rules)
        for number, included, quoted in rows:
            library = LIBRARIES.get(included.split('/')[0])
            if library:
                fault = None if source in library.split() else f'only {library} may use this library'
            elif not quoted:
                continue
            elif '/' not in included:
                fault = 'write the path from src/'
            else:
                count += 1
                fault = fault_of(source, layer(included, rules))
            if fault:
                faults.append(f'{path}:{number}: {source} includes "{included}": {fault}')
    return faults, count


def self_test():
    files = {
        'base/a.h': '',
        'ir/graph.h': '#include "base/a.h"\n',
        'ops/registry.h': '#include "ir/graph.h"\n#include <vector>\n',
        'ops/cpu/kernel.h': '#include "ops/registry.h"\n',
        'ops/add/cpu.cpp': '#include "ops/cpu/kernel.h"\n#include "ops/add/scratch.h"\n#include "ops/add/lanes-inl.h"\n',
        'ops/add/lanes-inl.h': '#include "hwy/highway.h"\n#include "ops/cpu/kernel.h"\n',  # reached by kernels only
        'ops/sub/op.cpp': '#include "ops/sub/shape.h"\n',
        'ops/sub/shape.h': '#include "ops/cpu/kernel.h"\n#include <dnnl.hpp>\n',  # reached by a rule
        'ops/add/op.cpp': '  #  include "ops/cpu/kernel.h"\n',          # rules may not see kernels
        'ops/add/scratch.h': '#include "device/device.h"\n',            # ops may not see the device
        'ops/cpu/gemm_scratch.h': '#include "ir/graph.h"\n',
        'ops/gemm/op.cpp': '#include "ops/cpu/gemm_scratch.h"\n',
        'ops/gemm/cpu_scratch.cpp': '#include "ops/cpu/gemm_scratch.h"\n#include "ops/cpu/capabilities.h"\n',
        'ops/cpu/capabilities.h': '#include "ir/graph.h"\n',
        'ops/cpu/backend.cpp': '#include "ops/registry.h"\n#include "ops/cpu/kernel.h"\n',  # planning sees no kernel
        'device/device.h': '#include "ops/cpu/kernel.h"\n',
        'planner/p.cpp': '#include "device/device.h"\n#include "cli/main.h"\n',
        'memory/m.cpp': '#include <yaml-cpp/yaml.h>\n#include <vector>\n',
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
    expected = ['memory/m.cpp:1', 'odd/o.h:1', 'ops/add/op.cpp:1', 'ops/add/scratch.h:1', 'ops/cpu/backend.cpp:2', 'ops/sub/shape.h:1',
                'ops/sub/shape.h:2', 'planner/p.cpp:1', 'planner/p.cpp:2', 'runtime/r.cpp:1', 'runtime/r.cpp:2',
                'train/t.h:1']
    if found != expected:
        sys.exit(f'self test: found {found}, expected {expected}')
    print('self test: ok')


def check(root):
    faults, count = forbidden(root)
    return faults, f'{count} includes, {len(faults)} forbidden'


if __name__ == '__main__':
    source_check.run(self_test, check)
