// The sizes of a call of lora_rows.
#pragma once

#include <cstdint>

#include "ir/op.h"

namespace headroom {

// The inputs of lora_rows.
struct LoraRowsInputs {
  enum : int { x, a, b, scales, slots, y };
};

struct LoraRowsShape {
  int64_t rows = 0;
  int64_t slots = 0;
  int64_t rank = 0;  // of a slot
  int64_t ins = 0;
  int64_t outs = 0;
};

// Of a call that infer() has accepted.
inline LoraRowsShape lora_rows_shape(const OpCall& call) {
  const std::vector<int64_t>&a = call.inputs[LoraRowsInputs::a].dims, &b = call.inputs[LoraRowsInputs::b].dims;
  return {call.inputs[LoraRowsInputs::x].dims[0], a[0], a[1], a[2], b[2]};
}

// Scratch of the kernels: the rows times A, f32[rows, rank].
inline int64_t lora_rows_scratch(const LoraRowsShape& shape) { return shape.rows * shape.rank * 4; }

}  // namespace headroom
