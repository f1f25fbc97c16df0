#!/usr/bin/env python3
"""Counts the files of src/ that name each technique: its own, which CONTRIBUTING.md lists, and others, which NAMED_IN of
check_techniques.py gives a reason for. A technique is named in at most PROMISED files.

Usage: count_technique_files.py [PROJECT_DIR]     prints the table and every breach, exit 1 when there is one
       count_technique_files.py --self-test       runs the count on files with known numbers

doctor is left out. Standard library only.
"""
import os
import sys

import check_techniques
import source_check

PROMISED = 6


def naming_files(code, name):
    """(own files, others) that name a technique; `code` has the text of each file without comments."""
    own = check_techniques.own_files(name)
    found = [path for path, text in code.items() if check_techniques.names_technique(name, path).search(text)]
    return [path for path in found if path in own], [path for path in found if path not in own]


def breach(name, files):
    return f'{name}: named in {files} files of src/, more than {PROMISED}: loop over all_techniques()' if files > PROMISED else ''


def self_test():
    code = {'passes/lora.h': 'PassInfo kLora{"lora"', 'engine/a.cpp': 'techniques::lora;', 'engine/b.cpp': 'pins["lora"]', 'engine/c.cpp': 'lora.rank'}
    own, others = naming_files(code, 'lora')
    if own != ['passes/lora.h'] or others != ['engine/a.cpp', 'engine/b.cpp'] or breach('x', PROMISED) or not breach('x', PROMISED + 1):
        sys.exit(f'self test: found {own}, {others}')
    print('self test: ok')


def check(root):
    source = os.path.join(root, 'src')
    with open(os.path.join(source, check_techniques.LIST), encoding='utf-8') as text:
        techniques = check_techniques.LISTED.findall(text.read())
    code = {path: ''.join(map(check_techniques.without_comment, lines))
            for path, lines in source_check.source_files(source, ('.h', '.cpp')) if not path.startswith('doctor/')}
    faults = []
    print(f'{"technique":<22} {"own":>4} {"others":>7} {"files":>6}')
    for name in techniques:
        own, others = naming_files(code, name)
        print(f'{name:<22} {len(own):>4} {len(others):>7} {len(own) + len(others):>6}')
        faults += filter(None, [breach(name, len(own) + len(others))])
    return faults, f'{len(techniques)} techniques, {len(faults)} breaches'


if __name__ == '__main__':
    source_check.run(self_test, check, '..')
