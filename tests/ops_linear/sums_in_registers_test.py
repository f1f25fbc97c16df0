"""The loops of the CPU's product kernels keep their sums in registers, as the compiler's output shows.

Usage: sums_in_registers_test.py BUILD_DIR
A loop over an array of vectors that GCC does not unroll keeps the array in memory: each product then loads its sum and
stores it again, at 0.4 of the speed. Fails if an innermost loop of these kernels stores as many vectors as it multiplies
and adds onto vectors in memory. Exit 77 (skipped) where there is no objdump or no object file of x86-64. Standard
library only.
"""
import os
import re
import shutil
import subprocess
import sys

KERNELS = ('cpu/simd_matmul', 'cpu/int8_matmul', 'attention/cpu_bf16_products', 'attention/cpu_simd_forward',
           'attention/cpu_simd_grad', 'attention/cpu_simd_decode', 'attention/cpu_simd_decode_tile',
           'paged_attention/cpu_bf16_tile', 'linear/cpu_dot', 'linear/cpu_dot_bf16', 'linear/cpu_coded_dot', 'linear/cpu_coded_dot_bf16',
           'linear/cpu_coded_tile', 'linear/cpu_coded_tile_bf16', 'linear/cpu_combine', 'linear/cpu_int8_block_kernels', 'linear/cpu_int8_block_vnni',
           'linear/cpu_row_blocks', 'cpu/vnni_int8_matmul')
FUNCTION = re.compile(r'^[0-9a-f]+ <(.*)>:$')
INSTRUCTION = re.compile(r'^\s*([0-9a-f]+):\s+(.*)$')
JUMP = re.compile(r'j\w+\s+([0-9a-f]+)')
PRODUCT = re.compile(r'v(?:fn?m(?:add|sub)\d+p[sd]|dpbf16ps|pmaddwd|pdpwssd|pdpbusd)\s')
ONTO_MEMORY = re.compile(r'v(?:f\w+213p[sd]|paddd)\s+-?(?:0x)?[0-9a-f]*\(')
LOADED_BEFORE = re.compile(r'v(?:dpbf16ps|pdpwssd|pdpbusd)\s')  # the sum is the destination: no operand in memory
STORE = re.compile(r'vmov\w+\s+%[yz]mm\d+,\s*-?(?:0x)?[0-9a-f]*\(')
LONGEST = 80  # instructions of a loop


def functions_of(path):
    """(name, [(address, instruction)]) of each function of an object file."""
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', '-C', path], capture_output=True, text=True, check=True).stdout
    name, body = None, []
    for line in text.splitlines():
        if function := FUNCTION.match(line):
            yield name, body
            name, body = function.group(1), []
        elif found := INSTRUCTION.match(line):
            body.append((int(found.group(1), 16), found.group(2)))
    yield name, body


def innermost_loops(body):
    """The instructions between a jump backwards and its target, for loops that hold no other."""
    place = {address: index for index, (address, _) in enumerate(body)}
    loops = []
    for index, (_, text) in enumerate(body):
        jump = JUMP.match(text)
        begin = place.get(int(jump.group(1), 16)) if jump else None
        if begin is not None and begin < index and index - begin < LONGEST and not any(begin <= first for first, _ in loops):
            loops.append((begin, index))
    return [[text for _, text in body[begin:end]] for begin, end in loops]


def sums_in_memory(loop):
    """Whether a loop's products are added onto vectors in memory."""
    products = sum(1 for text in loop if PRODUCT.match(text))
    stores = sum(1 for text in loop if STORE.match(text))
    loaded = sum(1 for text in loop if ONTO_MEMORY.match(text)) or sum(1 for text in loop if LOADED_BEFORE.match(text))
    return products >= 2 and loaded >= 2 and stores >= products


def main():
    folder = os.path.join(sys.argv[1], 'src', 'ops', 'CMakeFiles', 'headroom_kernels_cpu.dir')
    paths = [path for path in (os.path.join(folder, kernel + '.cpp.o') for kernel in KERNELS) if os.path.exists(path)]
    if not paths or not shutil.which('objdump') or os.uname().machine != 'x86_64':
        return 77
    faults = {f'{os.path.basename(path)}: {name}' for path in paths for name, body in functions_of(path)
              for loop in innermost_loops(body) if sums_in_memory(loop)}
    for fault in sorted(faults):
        print('sums in memory:', fault)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
