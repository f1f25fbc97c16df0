#!/usr/bin/env python3
"""Compiles every CUDA kernel for GPUs that the toolkit of CUDA 13 leaves out (sm_61, sm_70), by NVRTC of CUDA 12.

Usage: check_nvrtc.py [--library libnvrtc.so.12] [--arch sm_61 ...] [PROJECT_DIR]

The library comes from `pip install "nvidia-cuda-nvrtc-cu12==12.9.*"` in a virtual environment outside the tree; it is
looked for in --library, in the site-packages of the Python that runs this, and where the loader looks. Each
src/ops/*/*.cu with a kernel is compiled to machine code, which must hold every kernel that the file defines: a template
without an explicit instantiation under __CUDACC_RTC__ fails. Prints `N passed, N failed` and fails when one does; where
there is no library, says so and succeeds. Standard library only.
"""
import argparse
import ctypes
import glob
import os
import re
import sys
import sysconfig

ARCHITECTURES = ['sm_61', 'sm_70']
HEADERS = {  # NVRTC has no standard headers
    'cstdint': '''#pragma once
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long long;
''',
}


def find_library(wanted):
    """The opened library and its path, or None and the names that were tried."""
    folder = os.path.join(sysconfig.get_paths()['purelib'], 'nvidia', 'cuda_nvrtc', 'lib')
    names = [wanted] if wanted else sorted(glob.glob(os.path.join(folder, 'libnvrtc.so.12'))) + ['libnvrtc.so.12']
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library, name
    return None, ', '.join(names)


def check(library, status, what):
    if status != 0:
        raise RuntimeError(f'{what}: {library.nvrtcGetErrorString(status).decode()}')


def text_of(library, program, size_of, get):
    """What the pair of functions nvrtcGet...Size, nvrtcGet... gives."""
    size = ctypes.c_size_t()
    check(library, getattr(library, size_of)(program, ctypes.byref(size)), size_of)
    held = ctypes.create_string_buffer(size.value)
    check(library, getattr(library, get)(program, held), get)
    return held.raw


def compile_file(library, source, name, include, architecture):
    """(machine code or None, the compiler's log)"""
    program = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(HEADERS))(*(text.encode() for text in HEADERS.values()))
    names = (ctypes.c_char_p * len(HEADERS))(*(header.encode() for header in HEADERS))
    status = library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), len(HEADERS), texts, names)
    check(library, status, 'nvrtcCreateProgram')
    # Lambdas and the launchers' declarations have no annotations: NVRTC is told to take them as device code.
    options = [f'--gpu-architecture={architecture}', '-std=c++17', '--device-as-default-execution-space',
               f'--include-path={include}']
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*(o.encode() for o in options)))
    log = text_of(library, program, 'nvrtcGetProgramLogSize', 'nvrtcGetProgramLog').rstrip(b'\0').decode().strip()
    code = text_of(library, program, 'nvrtcGetCUBINSize', 'nvrtcGetCUBIN') if status == 0 else None
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log


def kernel_names(source):
    """The names of the kernels that a file defines."""
    source = re.sub(r'//[^\n]*', '', source)
    source = re.sub(r'__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)', '', source)
    return sorted(set(re.findall(r'__global__\s+(?:static\s+|inline\s+)*void\s+(\w+)\s*\(', source)))


def missing_kernels(names, code):
    """Those without machine code; in a mangled name an identifier follows its length."""
    return [name for name in names if f'{len(name)}{name}'.encode() not in code]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('project', nargs='?', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    parser.add_argument('--library')
    parser.add_argument('--arch', nargs='+', default=ARCHITECTURES)
    arguments = parser.parse_args()
    library, where = find_library(arguments.library)
    if library is None:
        print(f'skipped: NVRTC of CUDA 12 is not installed (tried {where}); '
              'pip install "nvidia-cuda-nvrtc-cu12==12.9.*" in a virtual environment and run this with its Python')
        return 0
    src = os.path.join(os.path.normpath(arguments.project), 'src')
    passed = failed = kernels = 0
    for path in sorted(glob.glob(os.path.join(src, 'ops', '*', '*.cu'))):
        with open(path, encoding='utf-8') as text:
            source = text.read()
        names = kernel_names(source)
        if not names:
            continue
        kernels += len(names)
        for architecture in arguments.arch:
            short = os.path.relpath(path, src)
            code, log = compile_file(library, source, short, src, architecture)
            absent = missing_kernels(names, code) if code is not None else []
            if code is not None and not absent:
                passed += 1
                continue
            failed += 1
            print(f'{short} for {architecture}: ' + (f'not instantiated: {", ".join(absent)}' if absent else log))
    print(f'{kernels} kernels by {where}')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
