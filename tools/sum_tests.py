#!/usr/bin/env python3
"""Sums up what ctest wrote with --output-junit, or pytest with --junitxml: the last line is "N passed, N failed, N skipped"; exit 1 on a failure.

Tests named NAME.at_LEVEL are runs at an instruction set (tests/isa): a line for each level says how they went."""
import sys
import xml.etree.ElementTree as ElementTree


def verdict(case):
    if case.get('status') is None:  # pytest's
        return 'failed' if case.find('failure') is not None or case.find('error') is not None else 'skipped' if case.find('skipped') is not None else 'passed'
    if case.get('status') == 'run':
        return 'passed'
    skips = case.get('status') == 'notrun' and case.find('skipped').get('message', '').startswith('SKIP')
    return 'skipped' if skips else 'failed'


def last_line(case):
    lines = (case.findtext('system-out') or '').strip().splitlines()
    return lines[-1].strip() if lines else ''


counts = dict(passed=0, failed=0, skipped=0)
levels = {}
for case in ElementTree.parse(sys.argv[1]).getroot().iter('testcase'):
    found = verdict(case)
    counts[found] += 1
    if found == 'failed':
        print(f"FAIL {case.get('name')}")
    if '.at_' in case.get('name'):
        level = levels.setdefault(case.get('name').rsplit('.at_', 1)[1], dict(passed=0, failed=0, skipped=0, why=''))
        level[found] += 1
        if found == 'skipped' or 'own' in last_line(case):
            level['why'] = ' (' + last_line(case) + ')'
for name, level in levels.items():
    print('instruction set {}: {passed} passed; {failed} failed; {skipped} skipped{why}'.format(name, **level))
print('{passed} passed, {failed} failed, {skipped} skipped'.format(**counts))
sys.exit(1 if counts['failed'] or not counts['passed'] else 0)
