// Dropout with the machine's best instruction set. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

struct DropoutRange {
  const void* x = nullptr;
  void* y = nullptr;  // may be x
  DType dtype = DType::f32;
  DType y_dtype = DType::f32;
  uint64_t key = 0;    // step_key() of ops/stream/counter_bits.h
  int64_t first = 0;   // index of x's first element in the step's global batch
  uint32_t below = 0;  // an element is dropped if the top 31 of its random bits are below this
  float scale = 1;     // factor on kept elements
};

// Computes elements [begin, end) of y.
void dropout_range(const DropoutRange& args, int64_t begin, int64_t end);

}  // namespace headroom
