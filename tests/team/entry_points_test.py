#!/usr/bin/env python3
"""Every OpenMP function that the program's libraries call must be defined by the program itself: with half of a parallel region
in headroom's team and half in libgomp's, each piece would be computed once per thread.

Usage: entry_points_test.py PROGRAM NM
"""
import re
import subprocess
import sys

ENTRY = re.compile(r'\b([TU]) ((?:GOMP|omp)_\w+)')


def symbols(nm, path):
    """{T: defined, U: undefined} among the dynamic symbols."""
    text = subprocess.run([nm, '-D', path], check=True, capture_output=True, text=True).stdout
    found = {'T': set(), 'U': set()}
    for kind, name in ENTRY.findall(text):
        found[kind].add(name)
    return found


def main():
    program, nm = sys.argv[1:]
    libraries = re.findall(r'=> (/\S+)', subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout)
    defined = symbols(nm, program)['T']
    callers = 0
    faults = []
    for library in libraries:
        if '/libgomp.' in library:
            continue
        wanted = symbols(nm, library)['U']
        callers += bool(wanted)
        faults += [f'{library} calls {name}, which src/team/openmp.cpp does not define' for name in sorted(wanted - defined)]
    if not callers:
        faults.append(f'no library of {program} calls OpenMP: then what is this test for?')
    print('\n'.join(faults) or f'{callers} librar{"y calls" if callers == 1 else "ies call"} nothing but what the program defines')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
