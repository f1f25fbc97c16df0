// Scratch of the CUDA kernels of the embedding's gradient.
#pragma once

#include <cstdint>

namespace headroom {

// For each token in the order of rows: its row and its index, i32.
inline int64_t embedding_grad_cuda_scratch(int64_t tokens) { return tokens * 8; }

}  // namespace headroom
