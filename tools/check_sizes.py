#!/usr/bin/env python3
"""Prints the size figures of the code and fails when a source file is longer than 800 lines.

Usage: check_sizes.py [PROJECT_DIR]     prints the figures, exit 1 when a file is too long
       check_sizes.py --self-test

A function's length is estimated by matching braces after comments and literals are blanked: a block whose head ends in
a parameter list (or a constructor's initialisers) and is not a control statement. Standard library only.
"""
import os
import re
import sys

MAX_LINES = 800
LONG_FUNCTION = 60
SUFFIXES = ('.h', '.cpp', '.cu', '.cuh')
CONTROL = re.compile(r'\b(if|else|for|while|do|switch|try|catch|namespace|class|struct|union|enum)\b')
UNFINISHED = re.compile(r'\b(TODO|FIXME|XXX)\b')

BLANKED = re.compile(
    r'//[^\n]*'                                   # line comment
    r'|/\*.*?\*/'                                 # block comment
    r'|R"([^()\\ ]*)\(.*?\)\1"'                   # raw string
    r'|"(?:\\.|[^"\\\n])*"'                       # string
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",      # character, not a digit separator
    re.S)


def blank(text):
    """The text with comments, literals, directives and access labels replaced by spaces; line breaks stay."""
    text = BLANKED.sub(lambda found: re.sub(r'[^\n]', ' ', found.group(0)), text)
    text = re.sub(r'\b(?:public|private|protected)\s*:(?!:)', lambda found: ' ' * len(found.group(0)), text)
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', lambda found: re.sub(r'[^\n]', ' ', found.group(0)), text, flags=re.M)


def opens_function(head):
    """Does the text between the previous ; { or } and this { end like a function's head?"""
    head = head.strip()
    if not head or '(' not in head or head.endswith(('=', ',', '(', 'return')):
        return False
    return not CONTROL.match(re.sub(r'^(template\s*<.*?>\s*|\[\[.*?\]\]\s*)*', '', head, flags=re.S))


def function_lengths(text):
    """Lines from the head to the closing brace of every outermost function body (lambdas count within theirs)."""
    text, lengths, stack, start, line, head_line = blank(text), [], [], 0, 1, 1
    for position, char in enumerate(text):
        if char == '\n':
            line += 1
        elif char == '{':
            inside = any(kind == 'function' for kind, _ in stack)
            if position and not text[position - 1].isspace():
                stack.append(('initialiser', head_line))  # x{1}: the formatter puts a space before every body
                continue
            kind = 'function' if not inside and opens_function(text[start:position]) else 'block'
            stack.append((kind, head_line))
        elif char == '}' and stack:
            kind, begun = stack.pop()
            if kind == 'initialiser':
                continue
            if kind == 'function':
                lengths.append(line - begun + 1)
        if char in '{};':
            start = position + 1
            rest = text[start:start + 4000]
            head_line = line + rest[:len(rest) - len(rest.lstrip())].count('\n')
    return lengths


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0


def sources(root, *folders):
    for folder in folders:
        for path, names, files in os.walk(os.path.join(root, folder)):
            names.sort()
            for name in sorted(files):
                if name.endswith(SUFFIXES):
                    yield os.path.join(path, name)


def read(path):
    with open(path, encoding='utf-8') as text:
        return text.read()


def report(root):
    """Prints the figures; returns the files that are too long."""
    product = {path: read(path) for path in sources(root, 'src', 'include')}
    tests = {path: read(path) for path in sources(root, 'tests')}
    for title, files in (('src and include', product), ('tests', tests)):
        lines = [text.count('\n') for text in files.values()]
        functions = [length for text in files.values() for length in function_lengths(text)]
        long_share = 100.0 * sum(length > LONG_FUNCTION for length in functions) / max(1, len(functions))
        print(f'{title}: {len(files)} files, {sum(lines)} lines; file lines median {percentile(lines, .5)}, '
              f'p90 {percentile(lines, .9)}, max {max(lines, default=0)}')
        print(f'  functions: {len(functions)}, p90 {percentile(functions, .9)} lines, '
              f'{long_share:.1f} % over {LONG_FUNCTION} lines')
    comments = sum(bool(re.match(r'\s*//', line)) for text in product.values() for line in text.split('\n'))
    total = sum(text.count('\n') for text in product.values())
    unfinished = sum(len(UNFINISHED.findall(text)) for text in product.values())
    print(f'comment lines {100.0 * comments / max(1, total):.0f} %, TODO {unfinished}, '
          f'public headers {len(list(sources(root, "include")))}, '
          f'test lines per source line {sum(t.count(chr(10)) for t in tests.values()) / max(1, total):.2f}')
    return [(path, text.count('\n')) for path, text in {**product, **tests}.items() if text.count('\n') > MAX_LINES]


def self_test():
    text = '''#include <a>
#define CHECK(x) do { \\
    f(x); } while (0)
// int commented() {
namespace n {
struct S { int v{3}; };
class C {
 public:
  C(int a) : b_(2), a_{a} { g("}{"); }

  int get() const {
    if (a_) { return '{'; }
    auto f = [](int x) { return x; };
    return 1'000 + f(2);
  }
};
template <typename T>
int two(T a,
        int b) {
  return R"(}}})" ? 1 : 2;
}
int values[] = {1, 2};
}  // namespace n
'''
    found = function_lengths(text)
    if found != [1, 5, 5]:
        sys.exit(f'self test: lengths {found}, expected [1, 5, 5]')
    if percentile([5, 1, 9], .5) != 5 or percentile([], .9) != 0:
        sys.exit('self test: percentile')
    print('self test: ok')


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    here = os.path.dirname(os.path.abspath(__file__))
    too_long = report(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, '..'))
    for path, lines in too_long:
        print(f'{path}: {lines} lines, the limit is {MAX_LINES}')
    return sys.exit(1 if too_long else 0)


if __name__ == '__main__':
    main()
