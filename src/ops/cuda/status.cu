// Error messages of the CUDA runtime.
#include "ops/cuda/device_language.cuh"
#include "ops/cuda/launch.h"

namespace headroom::cuda {

[[noreturn]] void throw_cuda(const char* what, const char* words);

void check_cuda(int status, const char* what) {
#if defined(__CUDACC__)
  if (status != 0) throw_cuda(what, cudaGetErrorString(static_cast<cudaError_t>(status)));
#else
  if (status != 0) throw_cuda(what, "the shim knows no errors");
#endif
}

}  // namespace headroom::cuda
