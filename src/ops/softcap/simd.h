// The soft cap and its gradient on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// Arrays of one dtype, f32 or bf16; the output may be any one of the inputs.
struct SoftcapArrays {
  const void* x = nullptr;   // of the gradient: y
  const void* dy = nullptr;  // null: forward
  void* result = nullptr;
  DType dtype = DType::f32;
  float cap = 1;
};

// Elements [begin, end).
void softcap_range(const SoftcapArrays& arrays, int64_t begin, int64_t end);

}  // namespace headroom
