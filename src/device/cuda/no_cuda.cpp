// Replaces the CUDA device in builds without it.
#include "base/error.h"
#include "device/cuda/cuda_runtime.h"
#include "device/cuda/open_cuda.h"

namespace headroom {

namespace {

[[noreturn]] void refuse(int index) {
  throw Error(ErrorKind::usage, fmt::format("--device cuda:{}: this build has no CUDA device", index),
              "build with -DHEADROOM_CUDA=ON where NVIDIA's toolkit is installed, or use --device cpu");
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(int index, const DeviceFacts&, const std::filesystem::path&) { refuse(index); }
DeviceFacts cuda_facts(int index) { refuse(index); }
DeviceMemory cuda_memory(int index) { refuse(index); }

}  // namespace headroom
