// Elementwise ops with the machine's best instruction set. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ops/elementwise/formula.h"

namespace headroom {

// The operands of a formula, in the order of its inputs and outputs: arrays of f32, bf16 or f16. An output may be one
// of the inputs if they have the same dtype.
struct ElementwiseArrays {
  const void* in[kFormulaInputs] = {};
  void* out[kFormulaOutputs] = {};
  DType dtype = DType::f32;         // of the inputs
  DType result_dtype = DType::f32;  // equal to dtype unless the formula converts
  FormulaDraws draws;               // if the formula draws
};

// Computes elements [begin, end) of the outputs.
void elementwise_range(Formula formula, const FormulaConstant<float>& constant, const ElementwiseArrays& arrays,
                       int64_t begin, int64_t end);

// gated_silu or its gradient for bf16 arrays, with AVX512_BF16 conversions. Only on machines that have them.
void gated_silu_bf16_range(Formula formula, const ElementwiseArrays& arrays, int64_t begin, int64_t end);

}  // namespace headroom
