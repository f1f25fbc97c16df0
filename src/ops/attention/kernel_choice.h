// Whose kernels compute attention on a GPU, as the plan says by attribute "kernels" of a call. Without the attribute
// the device takes cuDNN's where they accept the call.
#pragma once

#include <cstdint>
#include <string_view>

namespace headroom {

// Where cuDNN or the device lacks the call, our own serve all the same.
inline constexpr std::string_view kCudnnKernels = "cudnn";
inline constexpr std::string_view kOwnKernels = "own";
// cuDNN's gradient with sums in no fixed order, which a plan takes only where the user asks for it
// (passes/attention_order.h): repeated runs agree to rounding, not bitwise.
inline constexpr std::string_view kCudnnAnyOrder = "cudnn_any_order";

// Head sizes that our kernels on tensor cores take.
inline bool is_mma_head(int64_t dim) { return dim == 64 || dim == 96 || dim == 128; }

}  // namespace headroom
