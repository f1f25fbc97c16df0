// What plans and kernels distinguish about NVIDIA's GPUs: the compute capability.
#pragma once

#include <string>

#include "ir/op.h"

namespace headroom {

// As the number 10 major + minor.
inline constexpr Capability kComputeCapability{"compute_capability"};

inline Capabilities of_compute_capability(int version) { return Capabilities().add(kComputeCapability, version); }
inline int compute_capability(const DeviceFacts& facts) { return facts.capabilities.version(kComputeCapability); }
// "8.6"
inline std::string compute_capability_name(int version) {
  return std::to_string(version / 10) + "." + std::to_string(version % 10);
}

// From 7.0 on, tensor cores multiply fp16.
inline bool has_fp16_tensor_cores(const DeviceFacts& facts) { return compute_capability(facts) >= 70; }
// From 8.0 on, tensor cores multiply bf16, and copies to shared memory are asynchronous.
inline bool has_bf16_tensor_cores(const DeviceFacts& facts) { return compute_capability(facts) >= 80; }
// From 8.9 on, tensor cores multiply fp8.
inline bool has_fp8_tensor_cores(const DeviceFacts& facts) { return compute_capability(facts) >= 89; }
// Generation 9.x and later.
inline bool is_hopper_or_later(const DeviceFacts& facts) { return compute_capability(facts) >= 90; }
inline bool is_hopper(const DeviceFacts& facts) { return compute_capability(facts) / 10 == 9; }

}  // namespace headroom
