// The AdamW update on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ops/stream/updated_weight.h"

namespace headroom {

struct AdamWArrays {
  UpdatedWeight weight;
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

// The scalars of one step, rounded to f32 once.
struct AdamWStep {
  float clip = 1;
  float keep = 1;   // 1 - lr * weight_decay
  float beta1 = 0;  // weight of the old moment
  float one_minus_beta1 = 1;
  float beta2 = 0;
  float one_minus_beta2 = 1;
  float step_size = 0;        // lr / bias_correction1
  float sqrt_correction = 1;  // sqrt(bias_correction2)
  float eps = 0;
  uint64_t key = 0;  // of the draws that round a bf16 weight (ops/stream/counter_bits.h)
};

// Elements [begin, end): reads the weight, g, m and v once, writes the weight, m, v and the copy once.
void adamw_range(const AdamWArrays& arrays, const AdamWStep& step, int64_t begin, int64_t end);

}  // namespace headroom
