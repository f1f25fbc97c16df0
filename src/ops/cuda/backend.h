// Memory that the CUDA device takes besides its arena, in sizes that it chooses.
#pragma once

#include <cstdint>

namespace headroom {

inline constexpr int64_t kCudaWindowBytes = int64_t{8} << 20;  // host memory: Device::host_window()
inline constexpr int64_t kCudaGraphBytes = int64_t{32} << 20;  // the most GPU memory that captures take

}  // namespace headroom
