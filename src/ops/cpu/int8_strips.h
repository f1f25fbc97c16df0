// The operands of products of 8-bit codes, packed: a lane is a row of A or a column of B, and has a scale.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

struct Int8Operand {
  const void* from = nullptr;
  DType dtype = DType::f32;
  DType rounds = DType::f32;  // f32 elements are rounded to this type first
  int64_t stride = 0;         // elements between rows in memory
  bool depth_major = false;   // a row in memory is a step, else a lane
  int64_t lanes = 0;
  int64_t depth = 0;
};

// Packs the strips [first, last) of `width` lanes (12 or 32) to `to`, and writes the scales of their lanes. In a strip
// two steps of a lane are adjacent 16-bit numbers, the lanes of a pair of steps are contiguous, and pairs follow each
// other. Lanes and steps after the last are zero.
void pack_int8_strips(const Int8Operand& operand, int64_t width, int64_t first, int64_t last, std::byte* to,
                      float* scales);

}  // namespace headroom
