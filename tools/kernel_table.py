#!/usr/bin/env python3
"""Registers, spills, shared memory and 16-byte accesses of every CUDA kernel, as a page of tables.

Usage: kernel_table.py [--arch sm_80 ...] [--nvcc FILE] [--cuobjdump FILE] [--write PAGE | --check PAGE] [--self-test] [PROJECT_DIR]

Compiles each src/ops/*/*.cu that has a kernel with nvcc, reads what ptxas says of it and the machine code that cuobjdump
prints. --write PAGE writes the page (docs/cuda_kernels.md), --check PAGE compares it; without either it is printed.
Without nvcc or cuobjdump (of the toolkit, or `pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm`, both on PATH) it says so and succeeds. --self-test
reads a sample of both outputs. Standard library only.
"""
import argparse
import concurrent.futures
import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURES = ['sm_80', 'sm_89', 'sm_90']


@dataclasses.dataclass
class Kernel:
    """Of one architecture. spills: bytes stored and loaded; the rest of the counts are instructions in the code."""
    registers: int = 0
    spills: int = 0
    shared: int = 0
    loads: int = 0   # LDG of 16 bytes
    stores: int = 0  # STG of 16 bytes
    copies: int = 0  # LDGSTS of 16 bytes: into shared memory past the registers
    narrow: int = 0  # LDG, STG and LDGSTS of less
    products: int = 0  # HMMA


def read_ptxas(text):
    """{mangled name: Kernel} with what `-Xptxas -v` says."""
    kernels, name = {}, None
    for line in text.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            name = found[1]
            kernels[name] = Kernel()
        elif name and (found := re.search(r'(\d+) bytes spill stores, (\d+) bytes spill loads', line)):
            kernels[name].spills = int(found[1]) + int(found[2])
        elif name and (found := re.search(r'Used (\d+) registers', line)):
            kernels[name].registers = int(found[1])
            shared = re.search(r'(\d+) bytes smem', line)
            kernels[name].shared = int(shared[1]) if shared else 0
            name = None
    return kernels


def read_sass(text, kernels):
    """Adds the counts of `cuobjdump -sass` to the kernels of the same names."""
    kernel = None
    for line in text.splitlines():
        if found := re.search(r'Function : (\w+)', line):
            kernel = kernels.get(found[1])
            continue
        found = re.match(r'\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)', line)
        if not found or kernel is None:
            continue
        operation, *modifiers = found[1].split('.')
        wide = '128' in modifiers
        if operation in ('LDG', 'STG', 'LDGSTS') and not wide:
            kernel.narrow += 1
        elif operation == 'LDG':
            kernel.loads += 1
        elif operation == 'STG':
            kernel.stores += 1
        elif operation == 'LDGSTS':
            kernel.copies += 1
        elif operation == 'HMMA':
            kernel.products += 1
    return kernels


def plain_names(names):
    """{mangled: name with template arguments, without namespaces, return and argument types}"""
    program = shutil.which('c++filt')
    if not program:
        return {name: name for name in names}
    text = subprocess.run([program], input='\n'.join(names) + '\n', capture_output=True, text=True, check=True).stdout
    return {name: plain_name(line) for name, line in zip(names, text.splitlines())}


def plain_name(demangled):
    name = re.sub(r'headroom::cuda::|\(anonymous namespace\)::|headroom::', '', demangled)
    depth = 0
    for at, letter in enumerate(name):  # up to the arguments' parenthesis outside of template arguments
        depth += {'<': 1, '>': -1}.get(letter, 0)
        if letter == '(' and depth == 0:
            name = name[:at]
            break
    name = re.sub(r'^void ', '', name)
    return re.sub(r'\(\w+\)(\w+)', r'\1', name)


def compile_file(nvcc, cuobjdump, project, path, architecture):
    """{mangled name: Kernel}; throws with the compiler's text."""
    with tempfile.TemporaryDirectory() as folder:
        code = os.path.join(folder, 'code.cubin')
        built = subprocess.run([nvcc, '-cubin', f'-arch={architecture}', '-std=c++17', '--Werror', 'all-warnings', '-I',
                                os.path.join(project, 'src'), '-Xptxas', '-v', '-o', code, path], capture_output=True, text=True)
        if built.returncode != 0:
            raise RuntimeError(f'{path} for {architecture}:\n{built.stderr}')
        sass = subprocess.run([cuobjdump, '-sass', code], capture_output=True, text=True, check=True).stdout
        return read_sass(sass, read_ptxas(built.stdout + built.stderr))


def figures(kernels, value):
    """What the architectures have in common once, else one for each."""
    found = [str(value(kernel)) if kernel else '-' for kernel in kernels]
    return found[0] if len(set(found)) == 1 else ' / '.join(found)


def table(rows):
    """rows: [(name, [Kernel or None per architecture])]"""
    lines = ['| kernel | registers | spilled | shared | loads | stores | copies | narrow | mma |', '|---|---|---|---|---|---|---|---|---|']
    fields = ['registers', 'spills', 'shared', 'loads', 'stores', 'copies', 'narrow', 'products']
    for name, kernels in rows:
        cells = [figures(kernels, lambda k, field=field: getattr(k, field)) for field in fields]
        lines.append(f'| `{name}` | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def page(files, architectures, compiler):
    """files: {path: {architecture: {mangled: Kernel}}}"""
    parts = [f'''# CUDA kernels

What {compiler} makes of each kernel for {', '.join(architectures)}; one figure if they agree, else one for each, in this order. Written by
`tools/kernel_table.py --write docs/cuda_kernels.md`. Per thread: registers, and bytes spilled (stores and loads); per block: bytes of static
shared memory. Counted in the code: loads and stores of 16 bytes of device memory, asynchronous copies of 16 bytes into shared memory,
all of these with less than 16 bytes (ends of rows, ids, scalars), and tensor core instructions. Kernels over rows and elements whose last template
argument is `false` or 1 are for rows that are not multiples of 16 bytes.
''']
    spilling = 0
    for path, found in files.items():
        names = plain_names(sorted({name for kernels in found.values() for name in kernels}))
        rows = sorted((plain, [found[a].get(name) for a in architectures]) for name, plain in names.items())
        spilling += sum(any(kernel and kernel.spills for kernel in kernels) for _, kernels in rows)
        parts.append(f'## {path}\n\n{table(rows)}\n')
    count = sum(len({name for kernels in found.values() for name in kernels}) for found in files.values())
    parts.insert(1, f'{count} kernels, of which {spilling} spill on one of the architectures.\n')
    return '\n'.join(parts)


def find_tool(given, name):
    if given or shutil.which(name):
        return given or shutil.which(name)
    beside = glob.glob(os.path.join(sys.prefix, 'lib', 'python3*', 'site-packages', 'nvidia', '*', 'bin', name))
    return beside[0] if beside else None


def compiled_page(nvcc, cuobjdump, project, architectures):
    paths = sorted(path for path in glob.glob(os.path.join(project, 'src', 'ops', '*', '*.cu'))
                   if '__global__' in open(path, encoding='utf-8').read())
    files = {os.path.relpath(path, os.path.join(project, 'src', 'ops')): {} for path in paths}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {(path, a): pool.submit(compile_file, nvcc, cuobjdump, project, path, a) for path in paths for a in architectures}
        for (path, architecture), job in jobs.items():
            files[os.path.relpath(path, os.path.join(project, 'src', 'ops'))][architecture] = job.result()
    version = re.search(r'release ([\d.]+)', subprocess.run([nvcc, '--version'], capture_output=True, text=True).stdout)
    return page(files, architectures, f'nvcc {version[1]}' if version else 'nvcc')


PTXAS_SAMPLE = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN8headroom4cuda3addIfLb1EEEvPT_' for 'sm_90'
ptxas info    : Function properties for _ZN8headroom4cuda3addIfLb1EEEvPT_
    8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 44 registers, used 1 barriers, 8192 bytes smem
ptxas info    : Compiling entry function '_ZN8headroom4cuda4noneEv' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 6 registers
"""
SASS_SAMPLE = """		Function : _ZN8headroom4cuda3addIfLb1EEEvPT_
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                       /* 0x00000a00ff017b82 */
        /*0010*/                   LDG.E.128 R4, desc[UR8][R4.64] ;             /* 0x0000000804047981 */
                                                                                /* 0x000ea2000c1e1d00 */
        /*0020*/              @!P1 LDG.E.128.CONSTANT R4, desc[UR8][R4.64] ;    /* 0x0 */
        /*0030*/               @P0 LDG.E.U16 R0, desc[UR10][R10.64+0x2] ;       /* 0x0 */
        /*0040*/                   STG.E.128 desc[UR4][R2.64], R4 ;             /* 0x0 */
        /*0050*/                   LDGSTS.E.BYPASS.LTC128B.128 [R5], desc[UR4][R2.64] ;  /* 0x0 */
        /*0060*/                   HMMA.16816.F32.BF16 R4, R8, R10, R4 ;        /* 0x0 */
		Function : _ZN8headroom4cuda4noneEv
        /*0000*/                   EXIT ;                                       /* 0x000000000000794d */
"""


def self_test():
    kernels = read_sass(SASS_SAMPLE, read_ptxas(PTXAS_SAMPLE))
    found = kernels['_ZN8headroom4cuda3addIfLb1EEEvPT_']
    checks = [(found, Kernel(44, 20, 8192, 2, 1, 1, 1, 1)),
              (kernels['_ZN8headroom4cuda4noneEv'], Kernel(registers=6)),
              (plain_name('void headroom::cuda::add<float, (bool)1>(headroom::cuda::Args<float>)'), 'add<float, 1>'),
              (figures([found, found], lambda k: k.registers), '44'),
              (figures([found, None, Kernel(registers=6)], lambda k: k.registers), '44 / - / 6')]
    failed = [f'{a!r} is not {b!r}' for a, b in checks if a != b]
    print('\n'.join(failed + [f'{len(checks) - len(failed)} passed, {len(failed)} failed']))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('project', nargs='?', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    for option in ('--nvcc', '--cuobjdump', '--write', '--check'):
        parser.add_argument(option)
    parser.add_argument('--arch', nargs='+', default=ARCHITECTURES)
    parser.add_argument('--self-test', action='store_true')
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    nvcc, cuobjdump = find_tool(arguments.nvcc, 'nvcc'), find_tool(arguments.cuobjdump, 'cuobjdump')
    if not nvcc or not cuobjdump:
        print(f'skipped: there is no {"cuobjdump" if nvcc else "nvcc"}')
        return 0
    text = compiled_page(nvcc, cuobjdump, os.path.normpath(arguments.project), arguments.arch)
    if arguments.write:
        with open(arguments.write, 'w', encoding='utf-8') as out:
            out.write(text)
    elif arguments.check and text != open(arguments.check, encoding='utf-8').read():
        print(f'{arguments.check} is out of date: write it with --write')
        return 1
    elif not arguments.check:
        print(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
