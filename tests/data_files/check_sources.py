#!/usr/bin/env python3
"""Fails when a file of this folder has no line in SOURCES.tsv, when a line has no file, or when a licence does not allow the file
to be here. Usage: check_sources.py. Standard library only."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
OPEN = ('Apache-2.0', 'MIT', 'MIT-0', 'BSD-3-Clause', 'public domain', 'facts')
CODE = ('.py', '.h', '.pyc')


def files():
    """Data below this folder; the scripts and the two pages belong to the repository."""
    for path in HERE.rglob('*'):
        name = path.relative_to(HERE).as_posix()
        if path.is_file() and path.suffix not in CODE and name not in ('README.md', 'SOURCES.tsv', 'CMakeLists.txt'):
            yield name


def main():
    rows = [line.split('\t') for line in (HERE / 'SOURCES.tsv').read_text(encoding='utf-8').splitlines()[1:]]
    named, there = [row[0] for row in rows], set(files())
    problems = [f'{name} is not in SOURCES.tsv' for name in sorted(there.difference(named))]
    problems += [f'SOURCES.tsv names {name}, which is not there' for name in sorted(set(named) - there)]
    problems += [f'{name} stands twice in SOURCES.tsv' for name in sorted(set(named)) if named.count(name) > 1]
    problems += [f'{row[0]}: the licence {row[3]!r} is none of {", ".join(OPEN)}' for row in rows if not row[3].startswith(OPEN)]
    print('\n'.join(problems) if problems else f'{len(named)} files')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
