// The sizes behind the ops that send tokens to experts and bring them back, shared by their rules and kernels.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "ir/op.h"

namespace headroom {

// `tokens` tokens, each sent to `chosen` experts. Each pair of a token and one of its experts has its own row: there
// are tokens * chosen rows for any routing, sorted by expert, then by token.
struct RoutedShape {
  int64_t tokens = 0;
  int64_t chosen = 0;
  int64_t pairs() const { return tokens * chosen; }
};

// `rows` [..., chosen]: the row of each pair.
inline RoutedShape routed_shape(const ConcreteType& rows) {
  RoutedShape shape;
  shape.chosen = rows.dims.back();
  shape.tokens = element_count(rows.dims) / shape.chosen;
  HR_CHECK(shape.pairs() <= INT32_MAX, "{} rows for experts are more than an index counts", shape.pairs());
  return shape;
}

// The expert whose rows [offsets[e], offsets[e + 1]) hold `row`.
inline int64_t expert_of(const int32_t* offsets, int64_t experts, int32_t row) {
  int64_t low = 0, high = experts;  // offsets[low] <= row < offsets[high]
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (offsets[middle] <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

}  // namespace headroom
