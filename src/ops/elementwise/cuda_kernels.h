// Launcher of the elementwise ops' device code.
#pragma once

#include "ops/cuda/launch.h"
#include "ops/elementwise/formula.h"

namespace headroom::cuda {

// The operands of a formula, in the order of its inputs and outputs, `count` elements of one type each. An output may
// be any one of the inputs.
struct ElementwiseOperands {
  const void* in[kFormulaInputs] = {};
  void* out[kFormulaOutputs] = {};
  int64_t count = 0;
};

void launch_elementwise(Formula formula, FloatType type, float constant, const ElementwiseOperands& operands,
                        int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
