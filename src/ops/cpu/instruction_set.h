// The instruction sets of this machine's CPU.
#pragma once

#include "ops/cpu/capabilities.h"

namespace headroom {

// What this process may use: the best of the machine's sets that ONEDNN_MAX_CPU_ISA allows. The first call limits
// Highway's kernels to the same set, so that a run uses only one.
InstructionSet instruction_set();

}  // namespace headroom
