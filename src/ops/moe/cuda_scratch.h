// Scratch of the CUDA router: the same formula for the plan and for the kernels that divide it.
#pragma once

#include "ops/moe/shape.h"

namespace headroom {

// Pairs that one block sorts.
constexpr int64_t kCudaRoutePairs = 256;

// i32: the expert of each pair, then for each expert and block the number of its pairs in the block.
inline int64_t cuda_route_blocks(const RoutedShape& shape) {
  return (shape.pairs() + kCudaRoutePairs - 1) / kCudaRoutePairs;
}
inline int64_t cuda_route_scratch(const RoutedShape& shape, int64_t experts) {
  return (shape.pairs() + experts * cuda_route_blocks(shape)) * static_cast<int64_t>(sizeof(int32_t));
}

}  // namespace headroom
