// GELU and its gradient on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// Arrays of one dtype, f32 or bf16; the output may be any one of the inputs.
struct GeluArrays {
  const void* x = nullptr;
  const void* dy = nullptr;  // null: forward
  void* result = nullptr;    // y, or dx
  DType dtype = DType::f32;
  bool tanh = false;
};

// Elements [begin, end).
void gelu_range(const GeluArrays& arrays, int64_t begin, int64_t end);

}  // namespace headroom
