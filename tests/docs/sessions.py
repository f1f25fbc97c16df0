#!/usr/bin/env python3
"""Runs the console sessions of the documentation and compares their output.

Usage: sessions.py HEADROOM [--write] PAGE.md...
A session is a fenced block of kind "console" whose first line is "$ headroom ..."; the rest is the command's output, run from
the root of the repository with stdout and stderr together. --write replaces it by the current output. Exit code 1 when a page
is out of date. Standard library only.
"""
import os
import re
import shlex
import subprocess
import sys

SESSION = re.compile(r'(^```console\n\$ (headroom [^\n]*)\n)(.*?)(^```$)', re.M | re.S)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(program, command):
    words = shlex.split(command)
    done = subprocess.run([program, *words[1:]], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)
    return done.stdout


def main():
    arguments = [a for a in sys.argv[1:] if a != '--write']
    write = '--write' in sys.argv
    if len(arguments) < 2:
        sys.exit(__doc__)
    program, pages = os.path.abspath(arguments[0]), arguments[1:]
    passed = failed = 0
    for page in pages:
        path = os.path.join(ROOT, page)
        with open(path, encoding='utf-8') as text:
            before = text.read()

        def check(match):
            nonlocal passed, failed
            output = run(program, match.group(2))
            same = output.strip() == match.group(3).strip()
            passed, failed = passed + (same or write), failed + (not same and not write)
            if not same and not write:
                print(f'{page}: `{match.group(2)}` now prints\n{output}')
            return match.group(1) + output.rstrip() + '\n' + match.group(4)

        after = SESSION.sub(check, before)
        if write and after != before:
            with open(path, 'w', encoding='utf-8') as text:
                text.write(after)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
