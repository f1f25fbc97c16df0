// Launcher of the elementwise ops' device code.
#pragma once

#include "ops/cuda/launch.h"
#include "ops/elementwise/formula.h"

namespace headroom::cuda {

// A formula's operands, in the order of its inputs and outputs, with `count` elements of one type each. An output may
// be the same array as any input.
struct ElementwiseOperands {
  const void* in[kFormulaInputs] = {};
  void* out[kFormulaOutputs] = {};
  int64_t count = 0;
};

void launch_elementwise(Formula formula, FloatType type, float constant, const ElementwiseOperands& operands,
                        int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
