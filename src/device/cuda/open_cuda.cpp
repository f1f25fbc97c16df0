#include <string>

#include "device/cuda/cuda_device.h"
#include "ops/cuda/cublaslt.h"
#include "ops/cuda/cudnn.h"

namespace headroom {

std::unique_ptr<Device> open_cuda_device(int index, const DeviceFacts& facts) {
  std::unique_ptr<CudaRuntime> runtime = open_cuda_runtime(index);
  std::string reason;  // why a library is missing: our own kernels serve then
  CudaLibraries libraries;
  libraries.blas = open_cublaslt(reason);
  libraries.dnn = open_cudnn(runtime->properties().capability, reason);
  return make_cuda_device(std::move(runtime), facts, std::move(libraries));
}

DeviceFacts cuda_facts(int index) { return facts_of(open_cuda_runtime(index)->properties()); }

DeviceMemory cuda_memory(int index) {
  const CudaMemory memory = open_cuda_runtime(index)->memory();
  return {memory.total_bytes, memory.free_bytes, 0};
}

}  // namespace headroom
