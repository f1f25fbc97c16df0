// The launcher of the device code that decodes weights in blocks of codes.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// A matrix laid out by storage_layout() of ir/type.h, with the codes of base/block_codes.h.
struct CodedOperand {
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;      // f32, or codes of the signed dynamic map
  const float* outer_scales = nullptr;  // for these codes, followed by the offset; null if scales are f32
  int64_t outer_count = 0;
  int64_t elements = 0;
  int64_t block = 0;
  int64_t scale_block = 0;
  int bits = 4;
  float table[16] = {};  // values of 4-bit codes
};

// Writes the elements in row-major order, rounded to `type`.
void launch_decode(const CodedOperand& operand, FloatType type, void* values, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
