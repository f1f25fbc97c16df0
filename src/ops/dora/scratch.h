// What the CPU kernels of row lengths need as scratch.
#pragma once

#include "base/bytes.h"
#include "ops/dora/shape.h"

namespace headroom {

// A thread's decoded rows of a weight in blocks of codes.
inline int64_t decoded_lengths_bytes(const RowLengthsShape& shape) {
  return align_up(kLengthRows * shape.ins * int64_t{sizeof(float)}, 64);
}

inline int64_t row_lengths_scratch(const OpCall& call, int threads) {
  if (call.inputs[RowLengthsInputs::weight].storage.dense()) return 0;
  return threads * decoded_lengths_bytes(row_lengths_shape(call));
}

}  // namespace headroom
