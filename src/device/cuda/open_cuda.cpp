#include "device/cuda/open_cuda.h"

#include <string>

#include "base/error.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/cublaslt.h"
#include "ops/cuda/cudnn.h"

namespace headroom {
namespace {

std::string served_by_our_own(std::string_view what, std::string_view library, const std::string& reason) {
  return fmt::format("{} by our own kernels, which are slower than {}'s ({})", what, library, reason);
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(int index, const DeviceFacts& facts, const std::filesystem::path& disk) {
  std::unique_ptr<CudaRuntime> runtime = open_cuda_runtime(index);
  std::string reason;
  CudaLibraries libraries;
  libraries.nvml = open_nvml();
  libraries.blas = open_cublaslt(reason);
  if (!libraries.blas) libraries.missing = served_by_our_own("products", "cuBLASLt", reason);
  libraries.dnn = open_cudnn(runtime->properties().capability, reason);
  if (!libraries.dnn)
    libraries.missing += (libraries.missing.empty() ? "" : "; ") + served_by_our_own("attention", "cuDNN", reason);
  return make_cuda_device(std::move(runtime), facts, std::move(libraries), disk);
}

DeviceFacts cuda_facts(int index) { return facts_of(open_cuda_runtime(index)->properties()); }

DeviceMemory cuda_memory(int index) { return memory_without_arena(*open_cuda_runtime(index), open_nvml()); }

}  // namespace headroom
