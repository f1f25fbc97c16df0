#!/usr/bin/env python3
"""Checks that the strings of devices are compared in their registries alone: --device by those of src/device/devices.cpp, the
device of facts and profiles by backends() of src/ops/backend.cpp and, where it is the host itself, by DeviceFacts of src/ir/op.h.
Others ask those, so that a new backend is known everywhere at once.

Usage: check_device_names.py [SOURCE_DIR]     prints every breach, exit 1 when there is one
       check_device_names.py --self-test      runs the checker on lines with known faults

doctor, which knows other systems' devices, is left out. Standard library only.
"""
import re
import sys

import source_check

PLACES = ('ir/op.h',)
NAME = r'"(?:cpu|cuda|null|gpu)[:"]'
COMPARED = re.compile(rf'(?:[Dd]evice\w*(?:\(\))?\s*[=!]=\s*{NAME}|{NAME[:-1]}"?\s*[=!]=\s*\w*[Dd]evice|[Dd]evice\w*\.starts_with\({NAME})')


def breaches(path, lines):
    if path in PLACES or path.startswith('doctor/'):
        return []
    return [f'{path}:{number}: ask device_kind() (device/device.h), backend_of() (ops/backend.h) or DeviceFacts (ir/op.h)'
            for number, line in enumerate(lines, 1) if COMPARED.search(line)]


def self_test():
    lines = ['if (options.device == "cpu") return;', 'return facts.device != "cuda";', 'device.starts_with("cuda:")',
             'std::string device = "cpu";', 'if (device_kind(device) == DeviceKind::cpu) return;', 'if (text == "null") return;']
    found = [fault.split(':')[1] for fault in breaches('train/setup.cpp', lines)]
    if found != ['1', '2', '3'] or breaches(PLACES[0], lines):
        sys.exit(f'self test: found {found}')
    print('self test: ok')


def check(root):
    faults = [fault for path, lines in source_check.source_files(root, ('.h', '.cpp')) for fault in breaches(path, lines)]
    return faults, f'{len(faults)} comparisons of device names outside their place'


if __name__ == '__main__':
    source_check.run(self_test, check)
