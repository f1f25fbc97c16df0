#!/usr/bin/env python3
"""Checks what README.md, CONTRIBUTING.md, AGENTS.md and the pages of docs/ say about the code: every path, option of headroom,
function, type and file that stands in backticks exists, and so does what a link leads to.

Usage: check_pages.py [PROJECT_DIR] [PROGRAM]     prints every claim that does not hold, exit 1 when there is one
       check_pages.py --self-test                 runs the checker on a page with known faults

Options are those of `PROGRAM COMMAND --help` where a built program is given, else the names in src/arguments and src/cli. What
belongs to other programs and formats is listed in tools/page_names.txt, each with its reason. Standard library only.
"""
import os
import re
import subprocess
import sys
import tempfile

import source_check

PAGES = ('README.md', 'CONTRIBUTING.md', 'AGENTS.md', 'docs')
SOURCES = ('src', 'include', 'python', 'tests', 'tools', 'cmake', 'benchmarks', 'examples', '.ci')
CODE = ('.h', '.cpp', '.cu', '.cuh', '.py', '.sh', '.cmake', 'CMakeLists.txt')
COMMANDS = ('init', 'info', 'plan', 'train', 'generate', 'evaluate', 'tokenize', 'profile', 'report', 'watch', 'merge', 'quantize', 'serve', 'bench-serve', 'doctor')
NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'page_names.txt')

FENCE = re.compile(r'^\s*```.*?^\s*```', re.M | re.S)
SPAN = re.compile(r'`([^`\n]+)`')
LINK = re.compile(r'\]\(([^)#\s]+)(?:#[^)]*)?\)')
OPTION = re.compile(r'(?<![\w-])--[a-z][a-z0-9-]*')
PATH = re.compile(r'^\.?[\w.*{}<>-]+(?:/[\w.*{}<>,-]*)+$')
FILE = re.compile(r'^[\w.-]+\.(?:h|cpp|cu|cuh|py|md|sh|cmake)$')
FUNCTION = re.compile(r'^(?:\w+(?:::|\.))*(\w+)\(\)$')
TYPE = re.compile(r'^[A-Z][a-z0-9]+[A-Z]\w*(?:::\w+)*(?:\(\))?$')


def program_options(root, program):
    if program:
        texts = [subprocess.run([program, command, '--help'], capture_output=True, text=True, check=True).stdout for command in COMMANDS]
    else:
        folders = [os.path.join(root, 'src', name) for name in ('arguments', 'cli')]
        texts = [''.join(lines) for folder in folders for _, lines in source_check.source_files(folder, ('.cpp', '.h'))]
    return set(option for text in texts for option in OPTION.findall(text)) | {'--help', '--version'}


def read_names(path):
    """The names of other programs and formats: lines of "reason: name name ...", and for one page "page.md reason: ..."."""
    names = set()
    if os.path.isfile(path):
        with open(path, encoding='utf-8') as text:
            for line in text:
                if line.strip() and not line.startswith('#'):
                    names.update(line.split(':', 1)[1].split())
    return names


class Tree:
    """What exists: paths, names of files, words of the sources, options."""

    def __init__(self, root, program, names):
        self.root, self.names = root, names
        self.options = program_options(root, program)
        self.paths = {os.path.relpath(os.path.join(path, name), root).replace(os.sep, '/')
                      for folder in SOURCES + ('docs', 'demo', 'test')
                      for path, _, files in os.walk(os.path.join(root, folder)) for name in files}
        self.words = {word for _, lines in source_check.project_files(root, SOURCES, CODE)
                      for line in lines for word in re.findall(r'\w+', line)}
        self.files = {os.path.basename(path) for path in self.paths} | set(PAGES)

    def has_path(self, text, page):
        if re.search(r'[<{*]', text):
            pattern = re.compile('(?:.*/)?' + re.sub(r'<\w+>|\\\{[^}]*\\\}|\\\*', '[^/]*', re.escape(text.rstrip('/')).replace(r'\<', '<').replace(r'\>', '>')) + '(?:/.*)?$')
            return any(pattern.match(path) for path in self.paths)
        bases = (self.root, os.path.join(self.root, os.path.dirname(page)), os.path.join(self.root, 'src'))
        return any(os.path.exists(os.path.join(base, text)) for base in bases) or any(path.endswith('/' + text) for path in self.paths)


def fault_of(span, page, tree):
    """Why the claim of a span does not hold, or None."""
    if span in tree.names or any(re.fullmatch(name.replace('.', r'\.').replace('*', '.*'), span) for name in tree.names if '*' in name):
        return None
    if span.startswith('--') or span.startswith('headroom '):
        for option in OPTION.findall(span.split(' -- ')[0]):
            if option not in tree.options and option not in tree.names:
                return f'{option} is not an option of headroom'
        return None
    if PATH.match(span) and not span.startswith('/'):
        return None if tree.has_path(span, page) else f'{span}: no such path'
    if FILE.match(span):
        return None if span in tree.files else f'{span}: no such file'
    function = FUNCTION.match(span)
    if function or TYPE.match(span):
        word = function.group(1) if function else re.split(r'::|\(', span)[-1 if '::' in span else 0].rstrip('()')
        return None if word in tree.words else f'{word} is in no source'
    return None


def faults_of(page, text, tree):
    faults = []
    blanked = FENCE.sub(lambda found: re.sub(r'[^\n]', ' ', found.group(0)), text)
    for number, line in enumerate(blanked.split('\n'), 1):
        for span in SPAN.findall(line):
            fault = fault_of(span.strip(), page, tree)
            if fault:
                faults.append(f'{page}:{number}: {fault}')
        for link in LINK.findall(line):
            if '://' not in link and not os.path.exists(os.path.join(tree.root, os.path.dirname(page), link)):
                faults.append(f'{page}:{number}: the link {link} leads nowhere')
    return faults


def self_test():
    page = ('`src/a/x.h` and `src/a/y.h`, `x.h`, `z.h`\n`--memory 2GiB`, `--nothing`, `headroom plan --memory 1 -- vllm --other`\n'
            '`run()`, `walk()`, `BigType::run`, `NoType`\n[a](src/a/x.h) [b](gone.md) `src/*/x.h` `src/<op>/q.h`\n```\n`--in-a-fence`\n```\n')
    with tempfile.TemporaryDirectory() as root:
        for name, text in {'src/a/x.h': 'struct BigType { void run(); };', 'src/cli/c.cpp': '"--memory"', 'README.md': page}.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), 'w', encoding='utf-8') as out:
                out.write(text)
        found = faults_of('README.md', page, Tree(root, None, set()))
    expected = ['1: src/a/y.h', '1: z.h', '2: --nothing', '3: walk', '3: NoType', '4: src/<op>/q.h', '4: the link gone.md']
    short = [re.match(r'README\.md:(\d+: (?:the link )?[^ :]+)', fault).group(1) for fault in found]
    if short != expected:
        sys.exit(f'self test: found {short}')
    print('self test: ok')


def check(root):
    tree = Tree(root, sys.argv[2] if len(sys.argv) > 2 else None, read_names(NAMES))
    faults = [fault for path, lines in source_check.project_files(root, PAGES, ('.md',)) for fault in faults_of(path, ''.join(lines), tree)]
    return faults, f'{len(faults)} claims of pages that do not hold'


if __name__ == '__main__':
    source_check.run(self_test, check, '..')
