// CudaDnn implemented with cuDNN's frontend. A build without its headers has no such library.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <string>

#include "ops/cuda/dnn.h"

namespace headroom {

// The first version, in the library's numbering, whose gradient of attention on compute capability 9.x has a fixed
// order with a workspace linear in the length.
constexpr size_t kCudnnGradientVersion = 92500;

// "9.25.0"
inline std::string cudnn_version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
// A sentence for the user when a gradient in a fixed order was asked for, and this version does not have it on a device
// where a later version does; else empty.
inline std::string cudnn_gradient_remark(size_t version, int capability, bool asked_for) {
  if (!asked_for || capability / 10 != 9 || version >= kCudnnGradientVersion) return {};
  return fmt::format("attention's gradient by our own kernels: cuDNN {} is older than {}", cudnn_version_text(version),
                     cudnn_version_text(kCudnnGradientVersion));
}

struct CudnnOptions {
  std::string library = "libcudnn.so.9";  // name or path
  // A device that need not be present, in the library's own JSON (tests/cuda_dnn/described_devices.h): calls are
  // prepared for it, with their workspace, but cannot run. Empty: the calling thread's current device.
  std::string device;
};

// The library, for a device of compute capability `capability` (10 major + minor); null and the reason when it cannot
// be opened or not on this device. Call from one thread; a process keeps the library that it opened first.
std::unique_ptr<CudaDnn> open_cudnn(int capability, std::string& reason, const CudnnOptions& options = {});

}  // namespace headroom
