"""Writable data of the engine's and doctor's libraries that does not belong to a session: each variable must be listed here with the reason.

Usage: globals_test.py FOLDER     FOLDER: a build folder, whose libheadroom_*.a are read
"""
import pathlib
import re
import subprocess
import sys

# Created once, guarded by the compiler, and then constant: any thread may read them.
MADE_ONCE = ('ops()::registry', 'backends()::built', 'devices()::built', 'elementwise_rows()::rows', 'update_rows()::rows', 'optimizers()::registry', 'cpu_kernels()::kernels', 'Attrs::items[abi:cxx11]() const::none', 'onednn_engine()::engine',
             'instruction_set()::usable', 'tiles_permitted()::permitted', 'evict_bytes(headroom::TensorView const&, long)::unordered',
             'usual_size()::first', 'libgomp()::functions',
             # doctor's
             'CommandReader::word(unsigned long) const::kNone', 'phase_rules()::rules', 'recognisers()::table', 'rows_by_word()::rows',
             'triggers()::scan', 'ResourceReader::words()::words', 'log_filter()::filter', 'known_gpus()::table', 'usual_values()::values')
# Per thread.
OF_A_THREAD = ('usual_size()::size', 'team_size()::size', 'place()::here', 'look_for_neighbours(headroom::team::SpinRule&)::before', 'mode_of_thread', 'known_texts')
# Shared on purpose, each with a lock or atomics.
SHARED = ('account()::instance', 'the_team()::team')
# Not part of the public API: the command line, report pages and the load generator; and CUDA's libraries.
BESIDE = re.compile(r'libheadroom_(cli|report|bench_serve)|cuda')
SECTION = re.compile(r'\.(data|bss|tdata|tbss)(?!\.rel\.ro)')


def written_of(archive):
    """Names of the symbols in writable sections."""
    listed = subprocess.run(['nm', '-C', '--defined-only', '--format=sysv', archive], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        fields = [field.strip() for field in line.rsplit('|', 6)]
        if len(fields) == 7 and SECTION.match(fields[6]) and not fields[0].startswith(('.', 'guard variable', 'DW.ref')):
            yield fields[0]


def is_known(name):
    if name.startswith(('std::', 'CLI::', 'boost::', 'fmt::')):  # constants of other libraries, and what Asio keeps for its threads
        return True
    return any(name.endswith(known) for known in MADE_ONCE + OF_A_THREAD + SHARED)


def main(folder):
    archives = [path for path in sorted(pathlib.Path(folder, 'src').rglob('libheadroom*.a')) if not BESIDE.search(path.name)]
    objects = sorted(pathlib.Path(folder, 'src', 'team').rglob('*.o'))
    unknown = [f'{path.name}: {name}' for path in archives + objects for name in written_of(path) if not is_known(name)]
    for line in unknown:
        print(f'{line} can be written: make it constant or a member, or say here why all sessions may share it')
    print(f'{len(archives)} libraries, {len(unknown)} unknown')
    return 1 if unknown or len(archives) < 20 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
