// Scratch of the CUDA kernels of the embedding's gradient.
#pragma once

#include <cstdint>

namespace headroom {

// The tokens in the order of their rows: for each its row and its place, i32.
inline int64_t embedding_grad_cuda_scratch(int64_t tokens) { return tokens * 8; }

}  // namespace headroom
