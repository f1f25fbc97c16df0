#!/usr/bin/env python3
"""Prints src/jinja/text_tables.cpp: case mappings and printable characters of Python's Unicode database."""
import sys
import unicodedata


def runs(mapping):
    """{code: other} -> [(first, last, stride, delta)]"""
    found = []
    for code in sorted(mapping):
        delta = mapping[code] - code
        if found:
            first, last, stride, d = found[-1]
            step = code - last
            if d == delta and step in (1, 2) and (first == last or step == stride):
                found[-1] = (first, code, step, d)
                continue
        found.append((code, code, 1, delta))
    return found


def wrapped(items):
    lines, line = [], ''
    for item in items:
        if len(line) + len(item) > 112:
            lines.append(line)
            line = ''
        line += (' ' if line else '') + item
    return '\n'.join('    ' + text for text in lines + [line])


def table(kind, name, items):
    print(f'constexpr {kind} {name}[] = {{\n// clang-format off\n{wrapped(items)}\n// clang-format on\n}};\n')


def main():
    points = [c for c in range(0x80, 0x110000) if not 0xd800 <= c < 0xe000]
    print('// Made by tests/jinja/make_unicode_tables.py, Unicode', unicodedata.unidata_version)
    print('#include "jinja/text_tables.h"\n\nnamespace headroom::jinja {\nnamespace {\n')
    specials = []
    for name, function in (('kUpper', str.upper), ('kLower', str.lower)):
        single = {c: ord(function(chr(c))) for c in points if len(function(chr(c))) == 1 and function(chr(c)) != chr(c)}
        table('CaseRun', name, [f'{{{a:#x}, {b:#x}, {s}, {d}}},' for a, b, s, d in runs(single)])
    for name, function in (('kUpperSpecial', str.upper), ('kLowerSpecial', str.lower), ('kTitleSpecial', str.title)):
        rows = []
        for c in points:
            to = function(chr(c))
            if len(to) > 1 or (function is str.title and to != chr(c).upper()):
                codes = [f'{ord(x):#x}' for x in to] + ['0'] * (3 - len(to))
                rows.append(f'{{{c:#x}, {{{", ".join(codes)}}}}},')
        table('CaseSpecial', name, rows)
    hidden = []
    for c in range(0x80, 0x110000):
        if chr(c).isprintable():
            continue
        if hidden and hidden[-1][1] == c - 1:
            hidden[-1][1] = c
        else:
            hidden.append([c, c])
    table('PointRange', 'kHidden', [f'{{{a:#x}, {b:#x}}},' for a, b in hidden])
    print('}  // namespace\n\nconst TextTables& text_tables() {')
    print('  static constexpr TextTables tables{kUpper, kLower, kUpperSpecial, kLowerSpecial, kTitleSpecial, kHidden};')
    print('  return tables;\n}\n\n}  // namespace headroom::jinja')


if __name__ == '__main__':
    sys.exit(main())
