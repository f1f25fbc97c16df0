// A row of an int8 KV pool: for each kv head its codes, one byte an element, then their scale as f32. An element is its
// code times the scale: the largest magnitude of the head over 127. Heads need no alignment.
#pragma once

#include <cstdint>
#include <cstring>

#include "ir/dtype.h"

namespace headroom {

constexpr int64_t kHeadScaleBytes = 4;

// Elements of a pool of this dtype that one kv head of `dim` takes in a row.
constexpr int64_t pool_head_width(DType pool, int64_t dim) { return pool == DType::i8 ? dim + kHeadScaleBytes : dim; }

// The scale of the head whose codes begin at `head`.
inline float head_scale(const int8_t* head, int64_t dim) {
  float scale;
  std::memcpy(&scale, head + dim, sizeof scale);
  return scale;
}

}  // namespace headroom
