// What a GPU takes beside its arena, by the CUDA device's own choice.
#pragma once

#include <cstdint>

namespace headroom {

inline constexpr int64_t kCudaWindowBytes = int64_t{8} << 20;  // of the host's memory: Device::host_window()
inline constexpr int64_t kCudaGraphBytes = int64_t{32} << 20;  // most that captures take of the GPU's memory

}  // namespace headroom
