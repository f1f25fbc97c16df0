// How the CUDA kernel of sum_squares divides its input, and its scratch.
#pragma once

#include <cstdint>

namespace headroom {

constexpr int64_t kCudaSumChunk = int64_t{1} << 14;  // elements per block

inline int64_t cuda_sum_chunks(int64_t elements) { return (elements + kCudaSumChunk - 1) / kCudaSumChunk; }

// One f64 per chunk.
inline int64_t sum_squares_cuda_scratch(int64_t elements) { return cuda_sum_chunks(elements) * 8; }

}  // namespace headroom
