// CudaDnn over cuDNN's frontend, whose headers a build may lack: then there is no library.
#pragma once

#include <memory>
#include <string>

#include "ops/cuda/dnn.h"

namespace headroom {

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
