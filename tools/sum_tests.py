#!/usr/bin/env python3
"""Sums up what ctest wrote with --output-junit: the last line is "N passed, N failed, N skipped"; exit 1 on a failure."""
import sys
import xml.etree.ElementTree as ElementTree

passed, failed, skipped = 0, [], 0
for case in ElementTree.parse(sys.argv[1]).getroot().iter('testcase'):
    status = case.get('status')
    if status == 'run':
        passed += 1
    elif status == 'notrun' and case.find('skipped').get('message', '').startswith('SKIP'):
        skipped += 1
    else:
        failed.append(case.get('name'))
for name in failed:
    print(f'FAIL {name}')
print(f'{passed} passed, {len(failed)} failed, {skipped} skipped')
sys.exit(1 if failed or not passed else 0)
