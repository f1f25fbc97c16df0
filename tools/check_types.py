#!/usr/bin/env python3
"""Checks that a class or struct of one name is defined once in each namespace of src/.

Usage: check_types.py [SOURCE_DIR]     prints every type with definitions in several files, exit 1 when there is one
       check_types.py --self-test      runs the checker on a small tree with known faults

Two definitions break the rule of one definition: the linker keeps the destructor of one for both. Types of unnamed
namespaces, and those inside other types, do not count. Reads lines, no grammar: namespaces open and types begin in the
first column, as clang-format leaves them. Standard library only.
"""
import collections
import os
import re
import sys
import tempfile

import source_check

OPENS = re.compile(r'(?:inline )?namespace\s*([\w:]*)\s*\{(?!.*\})')
CLOSES = re.compile(r'\}\s*//\s*namespace')
TYPE = re.compile(r'(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?(?::[^:].*)?\{')


def types_of(path):
    """(namespace, name) of the types that a file defines."""
    spaces = []
    with open(path, encoding='utf-8') as text:
        for line in text:
            if match := OPENS.match(line):
                spaces.append(match.group(1))
            elif CLOSES.match(line) and spaces:
                spaces.pop()
            elif (match := TYPE.match(line)) and spaces and '' not in spaces:
                yield '::'.join(spaces), match.group(1)


def doubled(root):
    """The messages for types with several definitions, and the number of types."""
    places = collections.defaultdict(list)
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            if name.endswith(('.h', '.cpp')):
                for found in types_of(path):
                    places[found].append(os.path.relpath(path, root).replace(os.sep, '/'))
    faults = [f'{space}::{name} is defined in {", ".join(paths)}' for (space, name), paths in sorted(places.items()) if len(paths) > 1]
    return faults, len(places)


def self_test():
    files = {
        'a.h': 'namespace headroom {\nclass Twice {\n};\nstruct Once : Base {\n};\nclass Told;\n}  // namespace headroom\n',
        'b.cpp': 'namespace headroom {\nnamespace {\nstruct Once {\n};\n}  // namespace\nstruct Twice final {\n  struct Once {\n  };\n};\n}  // namespace headroom\n',
        'c.h': 'namespace headroom::doctor {\nstruct Once {\n};\n}  // namespace headroom::doctor\n',
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            with open(os.path.join(root, name), 'w', encoding='utf-8') as out:
                out.write(text)
        faults, count = doubled(root)
    if faults != ['headroom::Twice is defined in a.h, b.cpp'] or count != 3:
        sys.exit(f'self test: {faults}, {count} types')
    print('self test: ok')


def check(root):
    faults, count = doubled(root)
    return faults, f'{count} types, {len(faults)} defined twice'


if __name__ == '__main__':
    source_check.run(self_test, check)
