// The launcher of the device code that decodes weights in blocks of codes.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// A matrix as storage_layout() of ir/type.h lays it out, with codes as base/block_codes.h has them.
struct CodedOperand {
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;      // f32, or codes of the signed dynamic map
  const float* outer_scales = nullptr;  // of these codes, then what is added; null where scales are f32
  int64_t outer_count = 0;
  int64_t elements = 0;
  int64_t block = 0;
  int64_t scale_block = 0;
  int bits = 4;
  float table[16] = {};  // what codes of 4 bits stand for
};

// Writes the elements in row-major order, rounded to `type`.
void launch_decode(const CodedOperand& operand, FloatType type, void* values, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
