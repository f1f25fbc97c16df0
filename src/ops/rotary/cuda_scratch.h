// Scratch of the CUDA kernel of rope_table.
#pragma once

#include <cstdint>

namespace headroom {

// The inverse frequencies, f32, computed by the host.
inline int64_t rope_table_cuda_scratch(int64_t head_dim) { return head_dim / 2 * 4; }

}  // namespace headroom
