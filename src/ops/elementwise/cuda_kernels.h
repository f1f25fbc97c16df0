// Launcher of the elementwise ops' device code.
#pragma once

#include "ops/cuda/launch.h"
#include "ops/elementwise/formula.h"

namespace headroom::cuda {

// A formula's operands, in the order of its inputs and outputs, with `count` elements each. An output may be the same
// array as an input of its type.
struct ElementwiseOperands {
  const void* in[kFormulaInputs] = {};
  void* out[kFormulaOutputs] = {};
  int64_t count = 0;
  // If the formula draws: the step's scalars (ops/step_scalars.h), from which the device makes draws.key, and the
  // node's part of that key.
  const float* hyper = nullptr;
  uint64_t tensor = 0;
  FormulaDraws draws;
};

// x_type: of the inputs; y_type: of the outputs, equal to x_type unless the formula converts.
void launch_elementwise(Formula formula, FloatType x_type, FloatType y_type, float constant,
                        const ElementwiseOperands& operands, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
