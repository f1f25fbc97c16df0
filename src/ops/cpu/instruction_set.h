// The instruction sets of this machine's CPU.
#pragma once

#include "ops/cpu/capabilities.h"

namespace headroom {

// What this process may use: of the machine's sets those that ONEDNN_MAX_CPU_ISA allows. The first call limits
// Highway's kernels to the same, so that one run uses one instruction set.
InstructionSet instruction_set();

}  // namespace headroom
