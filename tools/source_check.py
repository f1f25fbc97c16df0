"""What the checks of the source tree share: reading it, and their command line."""
import os
import sys


def source_files(root, endings=('.h', '.cpp', '.cu', '.cuh')):
    """(path relative to root, its lines), in the order of the paths' folders and names."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith(endings):
                path = os.path.join(folder, name)
                with open(path, encoding='utf-8') as text:
                    yield os.path.relpath(path, root).replace(os.sep, '/'), text.readlines()


def project_files(root, folders, endings):
    """(path relative to root, its lines) of the files and folders named, for checks of more than src/."""
    for folder in folders:
        path = os.path.join(root, folder)
        if os.path.isfile(path):
            with open(path, encoding='utf-8') as text:
                yield folder, text.readlines()
        for name, lines in source_files(path, endings):
            yield f'{folder}/{name}', lines


def run(self_test, check, default=os.path.join('..', 'src')):
    """Runs self_test() for --self-test; else check(root), which gives the messages and a summary, on the directory of the
    command line, or on `default` from this one: the project's sources. Ends with 1 when there is a message."""
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, default)
    if not os.path.isdir(root):
        sys.exit(f'no such directory: {root}')
    faults, summary = check(root)
    print('\n'.join(faults + [summary]))
    return sys.exit(1 if faults else 0)
