// The record of recompute, and its setting as what each block keeps.
#pragma once

#include "passes/recompute.h"
#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique recompute;
}

// The first `treated` of `blocks` blocks keep `first`, the others `rest`. Activations of late layers live shortest, so
// that the first blocks are treated first.
Setting keep_setting(int64_t blocks, int64_t treated, Keep first, Keep rest);
// What each block keeps.
std::vector<Keep> keeps(const Setting& setting);
// "8 x block-input, 22 x keep-all"
std::string describe_keep(const Setting& setting);

}  // namespace headroom
