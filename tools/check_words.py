#!/usr/bin/env python3
"""Checks messages, comments, help texts and pages for phrases that docs/glossary.md or plain English has a better word for.

Usage: check_words.py [PROJECT_DIR]     prints every breach as file:line, exit 1 when there is one
       check_words.py --self-test      runs the checker on lines with known faults

Standard library only.
"""
import re
import sys

import source_check

FOLDERS = ('.ci', 'benchmarks', 'cmake', 'demo', 'docs', 'examples', 'include', 'python', 'src', 'test', 'tests', 'tools', 'AGENTS.md',
           'CMakeLists.txt', 'CONTRIBUTING.md', 'README.md')
ENDINGS = ('.h', '.cpp', '.cu', '.cuh', '.py', '.md', '.sh', '.cmake', 'CMakeLists.txt')
# Texts of others, records of runs, and what names the words.
SKIPPED = ('benchmarks/results/', 'tests/data_files/', 'tests/manuals/inputs/', 'tests/doctor_messages/logs/', 'docs/glossary.md', 'tools/check_words.py')

# (path, part of the line): what a format prescribes.
ALLOWED = {('src/engine/ladder.cpp', '{"rungs"'), ('src/engine/ladder.h', '{"rungs"'), ('docs/plan_format.md', '"rungs"'),
           ('tests/planner/ladder_test.cpp', '"rungs"'), ('include/headroom/engine.h', '"rungs"'), ('python/headroom/model.py', '"rungs"')}

BANNED = (
    (re.compile(r'(?<![Tt]here )(?<![Tt]here\'s )\b(?:is|are|was|were|be) no(?: |$)'
                r'(?:$|(?!longer|more\b|better|less\b|larger|smaller|worse|greater|fewer|faster|slower|other\b|such\b)[\w"\'`{])'),
     'X is no Y: write "is not a Y"'),
    (re.compile(r'\bmend(?:s|ed|ing)?\b', re.I), 'mend: write "correct" or "fix"'),
    (re.compile(r'\brungs?\b', re.I), 'rung: a point of the frontier'),
    (re.compile(r'\bjudg(?:e|es|ed|ing|ement|ment)\b', re.I), 'judge: check, compare, predict or test'),
    (re.compile(r'\bstamp(?:s|ed|ing)?\b', re.I), 'stamp: apply, or timestamp'),
    (re.compile(r'\bpatients?\b', re.I), 'patient: say what waits, and how long'),
    (re.compile(r'\bof one\'s own\b', re.I), 'of one\'s own: say whose'),
    (re.compile(r'\bneeds instruction set\b'), 'say which instructions the processor lacks'),
    (re.compile(r'\bwhole window while\b'), 'two readings: say which bytes the window takes and when'),
    (re.compile(r'\b(?:liveness|arenas?|offsets?)(?:,| and) packing\b|\bpack(?:s|ed|ing)? (?:of )?(?:the |an? )?(?:arenas?|buffers?)\b', re.I),
     'packing is for rows in a sequence: offset assignment'),
    (re.compile(r'\bunasked\b', re.I), 'unasked: write "by default"'),
    (re.compile(r'\bof no account\b'), 'of no account: write "ignored"'),
    (re.compile(r'\bin (?:its|their|the) midst\b'), 'midst: write "in the middle"'),
    (re.compile(r'\bbeside (?:each other|one another)\b', re.I), 'beside each other: say "at the same time", or "against each other"'),
    (re.compile(r'\bto the bit\b'), 'to the bit: write "bitwise"'),
    (re.compile(r'\b(?:has|have) not (?:the|a|an|any)\b'), 'has not the X: write "does not have the X"'),
    (re.compile(r'\bthat there (?:is|are) not\b|\bthose that there (?:is|are)\b'), 'that there is not: write "unknown", or "the known ones"'),
    (re.compile(r'\b(?:unless|if|where) said\b'), 'unless said: write "unless stated"'),
    (re.compile(r'\bso that which\b|\bby which means\b'), 'inverted: begin with the subject'),
    (re.compile(r'\bin PEFT (?:too|neither)\b'), 'write "as in PEFT"'),
    (re.compile(r'(?<![\w./])(?:cli|features)\.md\b'), 'cites a file outside the repository'),
    (re.compile(r'(?<!\.\./)\bshared/(?:architecture|style|features|cli|planning)\b'), 'cites a file outside the repository'),
)

# In comments and messages.
BANNED_IN_CODE = (
    (re.compile(r'\banew\b', re.I), 'anew: write "again"'),
    (re.compile(r'\bonce more\b', re.I), 'once more: write "again"'),
    (re.compile(r'\b(?:drawn?|draws) (?:it |them )?afresh\b'), 'afresh: write "initialised at random"'),
    (re.compile(r'\bless \d+ ?%'), 'less N %: write "minus", or the percentage that is left'),
)


def faults_of(path, lines):
    if path.startswith(SKIPPED):
        return []
    faults = []
    for number, line in enumerate(lines, 1):
        for pattern, advice in BANNED if path.startswith('docs/') else BANNED + BANNED_IN_CODE:
            if pattern.search(line) and not any(path == file and part in line for file, part in ALLOWED):
                faults.append(f'{path}:{number}: {advice}')
    return faults


def self_test():
    lines = ['// A row that is no object.', 'there is no row', 'There are no rows, and none is needed', 'it is no longer here', 'mend config.json',
             '// the planner judges it', 'planned once and stamped', 'row of shared/features.md', 'a timestamp, amended', 'see ../shared/data',
             'what the planner does unasked', 'it has not the type', 'it has not been read', 'liveness and packing', 'packing of rows', 'made anew',
             'the GPU has it, less 5 %', 'a 5 % less', 'f32 unless said', 'an unknown name that there is not', 'exit codes of cli.md',
             'docs/cli.md']
    found = [fault.split(':')[1] for fault in faults_of('src/base/a.h', lines)]
    on_page = [fault.split(':')[1] for fault in faults_of('docs/a.md', lines)]
    if found != ['1', '5', '6', '7', '8', '11', '12', '14', '16', '17', '19', '20', '21'] or faults_of('benchmarks/results/a.md', lines):
        sys.exit(f'self test: found {found}')
    if set(found) - set(on_page) != {'16', '17'}:
        sys.exit(f'self test: found {on_page} on a page')
    print('self test: ok')


def check(root):
    faults = [fault for path, lines in source_check.project_files(root, FOLDERS, ENDINGS) for fault in faults_of(path, lines)]
    return faults, f'{len(faults)} phrases to replace'


if __name__ == '__main__':
    source_check.run(self_test, check, '..')
