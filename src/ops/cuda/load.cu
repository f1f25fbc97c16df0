// Loading of kernels before their first launch.
#include "ops/cuda/device_language.cuh"
#include "ops/cuda/launch.h"

namespace headroom::cuda {

#if defined(__CUDACC__)
namespace {

constexpr int64_t kSharedWithoutAsking = 48 << 10;  // static and dynamic shared memory of a block

// Attributes may be those of a function that is only partly loaded (cuModuleEnumerateFunctions); since CUDA 12.4 the
// driver's cuFuncLoad completes it.
void finish_loading(const void* code) {
#if CUDART_VERSION >= 12050
  cudaFunction_t function = nullptr;
  check_cuda(cudaGetFuncBySymbol(&function, code), "loading a kernel");
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  check_cuda(cudaGetDriverEntryPointByVersion("cuFuncLoad", &entry, 12040, cudaEnableDefault, &found),
             "asking the driver how to load");
  if (found != cudaDriverEntryPointSuccess) return;
  check_cuda(reinterpret_cast<int (*)(cudaFunction_t)>(entry)(function),
             "loading a kernel");  // the driver's error numbers are the runtime's
#endif
}

}  // namespace

void load_kernel(const void* code, const Grid& grid) {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, code), "loading a kernel");
  if (grid.block > attributes.maxThreadsPerBlock) check_cuda(cudaErrorLaunchOutOfResources, "loading a kernel");
  // One kernel may serve launches with more or less shared memory: never lower the limit of an earlier one.
  const int64_t granted = attributes.maxDynamicSharedSizeBytes;
  if (grid.shared_bytes > granted ||
      grid.shared_bytes + static_cast<int64_t>(attributes.sharedSizeBytes) > kSharedWithoutAsking) {
    const int64_t most = grid.shared_bytes > granted ? grid.shared_bytes : granted;
    check_cuda(cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)),
               "asking for shared memory");
  }
  finish_loading(code);
}
#else
void load_kernel(const void* code, const Grid& grid) { cuda_shim::load(code, grid.shared_bytes); }
#endif

}  // namespace headroom::cuda
