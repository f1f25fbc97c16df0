// The SGD update on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ops/stream/updated_weight.h"

namespace headroom {

struct SgdArrays {
  UpdatedWeight weight;
  const float* g = nullptr;
  float* buffer = nullptr;  // null without momentum
};

// The scalars of one step, rounded to f32 once.
struct SgdStep {
  float clip = 1;
  float decay = 0;  // of the weight, added to the gradient
  float momentum = 0;
  bool nesterov = false;
  float lr = 0;
  uint64_t key = 0;  // of the draws that round a bf16 weight (ops/stream/counter_bits.h)
};

// Elements [begin, end): reads the weight, g and the buffer once, writes the weight, the buffer and the copy once.
void sgd_range(const SgdArrays& arrays, const SgdStep& step, int64_t begin, int64_t end);

}  // namespace headroom
