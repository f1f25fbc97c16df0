// 8-bit states: codes of a dynamic quantile map, and the largest magnitude of each block of 256 elements.
#pragma once

#include <cstdint>

#include "base/dynamic_map.h"
#include "ops/update/formula.h"

namespace headroom {

constexpr int64_t blocks_of(int64_t elements) { return (elements + kStateBlock - 1) / kStateBlock; }

}  // namespace headroom
