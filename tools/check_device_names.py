#!/usr/bin/env python3
"""Checks that the strings of devices are compared in one place: --device by device_kind() in src/device/open_device.cpp, the
device of facts by DeviceFacts in src/ir/op.h. Others ask those, so that a new device is known everywhere at once.

Usage: check_device_names.py [SOURCE_DIR]     prints every breach, exit 1 when there is one
       check_device_names.py --self-test      runs the checker on lines with known faults

doctor, which knows other systems' devices, is left out. Standard library only.
"""
import os
import re
import sys

PLACES = ('device/open_device.cpp', 'ir/op.h')
NAME = r'"(?:cpu|cuda|null|gpu)[:"]'
COMPARED = re.compile(rf'(?:[Dd]evice\w*(?:\(\))?\s*[=!]=\s*{NAME}|{NAME[:-1]}"?\s*[=!]=\s*\w*[Dd]evice|[Dd]evice\w*\.starts_with\({NAME})')


def breaches(path, lines):
    if path in PLACES or path.startswith('doctor/'):
        return []
    return [f'{path}:{number}: ask device_kind() (device/device.h) or DeviceFacts (ir/op.h)'
            for number, line in enumerate(lines, 1) if COMPARED.search(line)]


def self_test():
    lines = ['if (options.device == "cpu") return;', 'return facts.device != "cuda";', 'device.starts_with("cuda:")',
             'std::string device = "cpu";', 'if (device_kind(device) == DeviceKind::cpu) return;', 'if (text == "null") return;']
    found = [fault.split(':')[1] for fault in breaches('train/setup.cpp', lines)]
    if found != ['1', '2', '3'] or breaches(PLACES[0], lines):
        sys.exit(f'self test: found {found}')
    print('self test: ok')


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'src')
    faults = []
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith(('.h', '.cpp')):
                path = os.path.join(folder, name)
                with open(path, encoding='utf-8') as text:
                    faults += breaches(os.path.relpath(path, root).replace(os.sep, '/'), text)
    print('\n'.join(faults + [f'{len(faults)} comparisons of device names outside their place']))
    return sys.exit(1 if faults else 0)


if __name__ == '__main__':
    main()
