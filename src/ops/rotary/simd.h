// Rotation of heads on the best instruction set of the machine.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

struct RotaryRows {
  const void* x = nullptr;
  void* y = nullptr;  // may be x
  const float* table = nullptr;
  int64_t table_rows = 0;
  int64_t seq = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t turned = 0;  // channels of a head that rotate: the width of the table
  int64_t offset = 0;
  const int32_t* offsets = nullptr;  // [batch], instead of `offset`; or null
  const int32_t* starts = nullptr;   // [batch * seq], subtracted from the positions; or null
  bool inverse = false;
  DType dtype = DType::f32;
};

// Rows [begin, end) of [batch * seq, heads * head_dim]. Positions outside the table are clamped to it.
void rotary_rows(const RotaryRows& args, int64_t begin, int64_t end);

}  // namespace headroom
