// The rows that an RMS norm normalises: runs as long as its weight.
#pragma once

#include <array>
#include <cstdint>

#include "ir/type.h"

namespace headroom {

// x[..., seq, groups * W] with a weight of W channels, as [sequences, seq * groups, W]: one group is the whole row, or
// the channels of one head (query and key norms).
inline std::array<int64_t, 3> norm_rows(const ConcreteType& x, const ConcreteType& w) {
  std::array<int64_t, 3> rows{1, 1, w.dims[0]};
  const size_t rank = x.dims.size();
  for (size_t i = 0; i + 2 < rank; ++i) rows[0] *= x.dims[i];
  rows[1] = (rank >= 2 ? x.dims[rank - 2] : 1) * (x.dims.back() / w.dims[0]);
  return rows;
}

}  // namespace headroom
