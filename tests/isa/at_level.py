#!/usr/bin/env python3
"""at_level.py LEVEL COMMAND...: runs COMMAND with ONEDNN_MAX_CPU_ISA=LEVEL, which limits oneDNN and headroom's own kernels.

Only for a LEVEL below the machine's own. The tests already run at that one without a limit, and nothing runs here. Exit codes:
COMMAND's; 0 at the machine's own level; 77 if the machine does not support LEVEL."""
import os
import sys

SKIPPED = 77
LEVELS = {"AVX2": "avx2 fma f16c bmi1 bmi2", "AVX512_CORE": "avx512f avx512bw avx512dq avx512vl", "AVX512_CORE_BF16": "avx512_bf16",
          "AVX512_CORE_AMX": "amx_tile amx_bf16"}


def machine_levels():
    """The levels of this machine, the lowest first; each includes the ones before it."""
    with open("/proc/cpuinfo", encoding="utf-8") as text:
        flags = set(next((line.split(":", 1)[1] for line in text if line.startswith("flags")), "").split())
    found = []
    for level, needed in LEVELS.items():
        if not flags.issuperset(needed.split()):
            break
        found.append(level)
    return found


def main():
    level, command = sys.argv[1], sys.argv[2:]
    found = machine_levels()
    if level not in found:
        print(f"skipped: this machine has {found[-1] if found else 'no AVX2'}, not {level}")
        return SKIPPED
    if level == found[-1]:
        print(f"{level} is this machine's own: the tests run at it without a cap")
        return 0
    os.environ["ONEDNN_MAX_CPU_ISA"] = level
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
