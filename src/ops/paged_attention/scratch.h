// Scratch of the kernels of attention_paged, one formula for the plan and for the kernels that carve it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ir/op.h"
#include "ops/paged_attention/shape.h"

namespace headroom {

// The reference kernel keeps one row of doubles per thread.
inline int64_t paged_reference_bytes(const PagedShape& shape) { return align_up(shape.dim * 8, 64); }

inline int64_t paged_scratch(const PagedShape& shape, const DeviceFacts& facts) {
  return paged_reference_bytes(shape) * facts.threads;
}

}  // namespace headroom
