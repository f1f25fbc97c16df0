// 16-bit rows of x as f32, where products are summed in f32 lanes: they are converted once for all columns instead of
// once for every tile. The bits of the products stay the same.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ops/cpu/capabilities.h"

namespace headroom {

constexpr int64_t kLeastWideRows = 3;  // a tile of cpu_dot.cpp; with a dense weight, whose rows are converted too

inline bool widens_rows(DType x, const Capabilities& capabilities) {
  if (!capabilities.has(kAvx2) || (x == DType::bf16 && capabilities.has(kAvx512Bf16))) return false;
  return dtype_bytes(x) == 2;
}

// The rows that are converted at a time: every pass converts or decodes the whole weight again.
inline int64_t wide_rows(int64_t rows, int64_t ins) {
  constexpr int64_t kBytes = int64_t{2} << 20, kLeast = 48;
  return std::min(rows, std::max(kLeast, kBytes / (4 * std::max<int64_t>(ins, 1)) / kLeast * kLeast));
}

inline int64_t wide_bytes(int64_t rows, int64_t ins) { return align_up(wide_rows(rows, ins) * ins * 4, 64); }

}  // namespace headroom
