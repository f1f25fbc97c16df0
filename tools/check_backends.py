#!/usr/bin/env python3
"""Checks that what belongs to a backend stays with it.

Usage: check_backends.py [SOURCE_DIR]     prints every breach, exit 1 when there is one
       check_backends.py --self-test      runs the checker on lines with known faults

An op's rules (op.cpp) know no device: what kernels need as scratch stands in cpu_scratch.cpp and cuda_scratch.cpp. The
numbers by which profiles name capabilities stand in the backends' backend.cpp and capabilities.h; all others ask for a
capability by its name (ir/capabilities.h). Device interfaces (device/*.h, ops/kernel.h, ops/backend.h) name no backend.
doctor, which knows other systems' devices, is left out. Standard library only.
"""
import re
import sys

import source_check

NUMBERED = re.compile(r'(cost/profile|ops/\w+/backend|ops/\w+/capabilities)\.(cpp|h)$')  # profile.cpp: the key "isa"
NUMBER = re.compile(r'\bisa\b|(?:[Cc]apabilit\w*|instruction_set)(?:\(\w*\))?\s*(?:[<>]=?|[=!]=)\s*\d')
ON_CUDA = re.compile(r'\bon_cuda\b')
DEVICE_IN_RULE = re.compile(r'\bDeviceFacts\b|\bis_cpu\b')
NEUTRAL = re.compile(r'(device/\w+|ops/kernel|ops/kernel_table|ops/backend)\.h$')
BACKEND = re.compile(r'\b(?:\w*Cuda\w*|\w*cuda_\w+)\b')


def code_of(line):
    """The line without its comment."""
    return line.split('//')[0]


def breaches(path, lines):
    if path.startswith('doctor/'):
        return []
    faults = []
    for number, line in enumerate(lines, 1):
        code = code_of(line)
        if ON_CUDA.search(code) or (path.endswith('/op.cpp') and DEVICE_IN_RULE.search(code)):
            faults.append(f'{path}:{number}: an op\'s rules know no device: scratch is in *_scratch.cpp (ops/backend.h)')
        if NUMBER.search(code) and not NUMBERED.search(path):
            faults.append(f'{path}:{number}: a capability has a name (ir/capabilities.h), no number')
        if NEUTRAL.match(path) and BACKEND.search(code):
            faults.append(f'{path}:{number}: the interface of all devices names one')
    return faults


def self_test():
    cases = [
        ('ops/add/op.cpp', 'return on_cuda(facts) ? 1 : 0;', 1), ('ops/add/op.cpp', 'if (facts.is_cpu()) return;', 1),
        ('ops/add/scratch.h', 'return on_cuda(facts) ? 1 : 0;', 1), ('ops/add/cpu_scratch.cpp', 'const DeviceFacts& facts', 0),
        ('train/setup.cpp', 'facts.isa = 2;', 1), ('cost/profile.cpp', 'reader.whole(json, "isa", 2)', 0),
        ('ops/cpu/backend.cpp', 'int isa = 512;', 0), ('ops/add/cpu.cpp', 'if (facts.capabilities.has(kAmx)) return;', 0),
        ('ops/add/cuda.cpp', 'if (compute_capability(facts) >= 80) return;', 1), ('ops/add/cpu.cpp', '// needs isa 514', 0),
        ('device/device.h', 'constexpr int64_t kCudaWindowBytes = 1;', 1), ('device/device.h', '// "cuda:1"', 0),
        ('device/cuda/cuda_device.h', 'class CudaDevice;', 0),
    ]
    for path, line, expected in cases:
        found = len(breaches(path, [line]))
        if found != expected:
            sys.exit(f'self test: {path}: {line!r}: {found} breaches, expected {expected}')
    print('self test: ok')


def check(root):
    faults = [fault for path, lines in source_check.source_files(root) for fault in breaches(path, lines)]
    return faults, f'{len(faults)} breaches of the bounds between backends'


if __name__ == '__main__':
    source_check.run(self_test, check)
