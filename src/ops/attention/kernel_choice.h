// Which kernels compute attention on a GPU, as the plan says by attribute "kernels" of a call. Without the attribute
// the device uses cuDNN's if they accept the call.
#pragma once

#include <cstdint>
#include <string_view>

namespace headroom {

// If cuDNN is missing or does not support the call, our own kernels are used.
inline constexpr std::string_view kCudnnKernels = "cudnn";
inline constexpr std::string_view kOwnKernels = "own";
// cuDNN's gradient with sums in no fixed order, which a plan uses only if the user asks for it
// (passes/attention_order.h): repeated runs agree up to rounding, not bitwise.
inline constexpr std::string_view kCudnnAnyOrder = "cudnn_any_order";

// Head sizes that our tensor-core kernels support.
inline bool is_mma_head(int64_t dim) { return dim == 64 || dim == 96 || dim == 128; }

}  // namespace headroom
