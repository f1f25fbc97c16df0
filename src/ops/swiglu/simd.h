// f(gate) * up and its gradient on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ops/swiglu/activation.h"

namespace headroom {

// Arrays of one dtype, f32 or bf16; an output may be any one of the inputs.
struct SwigluArrays {
  const void* gate = nullptr;
  const void* up = nullptr;
  const void* dh = nullptr;  // gradient only
  void* h = nullptr;         // forward only
  void* dgate = nullptr;
  void* dup = nullptr;
  DType dtype = DType::f32;
  GateActivation activation = GateActivation::silu;
};

// Elements [begin, end): the gradient when dh is given, else the forward product.
void swiglu_range(const SwigluArrays& arrays, int64_t begin, int64_t end);

}  // namespace headroom
