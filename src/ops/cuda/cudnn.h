// CudaDnn over cuDNN's frontend, whose headers a build may lack: then there is no library.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <string>

#include "ops/cuda/dnn.h"

namespace headroom {

// The first version whose gradient of attention on compute capability 9.x has a fixed order within a workspace linear
// in the length, as the library counts versions.
constexpr size_t kCudnnGradientVersion = 92500;

// "9.25.0"
inline std::string cudnn_version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
// A sentence for the user where this version takes no gradient in a fixed order on a device that a later one takes it
// on, though one was asked for; else empty.
inline std::string cudnn_gradient_remark(size_t version, int capability, bool asked_for) {
  if (!asked_for || capability / 10 != 9 || version >= kCudnnGradientVersion) return {};
  return fmt::format("attention's gradient by our own kernels: cuDNN {} is older than {}", cudnn_version_text(version),
                     cudnn_version_text(kCudnnGradientVersion));
}

struct CudnnOptions {
  std::string library = "libcudnn.so.9";  // name or path
  // A device that need not be there, in the library's own JSON (tests/cuda_dnn/described_devices.h): calls are prepared
  // for it, workspace and all, but cannot run. Empty: the calling thread's current device.
  std::string device;
};

// The library, for a device of compute capability `capability` (10 major + minor); null and the reason when it does not
// open, or not on this device. From one thread; a process keeps to the library that it opened first.
std::unique_ptr<CudaDnn> open_cudnn(int capability, std::string& reason, const CudnnOptions& options = {});

}  // namespace headroom
