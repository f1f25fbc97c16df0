#include "ops/cuda/rehearsal.h"

#include "ops/cuda/capture.h"
#include "ops/cuda/device_language.cuh"

namespace headroom::cuda {

#if defined(__CUDACC__)
namespace {

// Closed on every way out.
struct Rehearsal {
  cudaStream_t stream = nullptr;
  cudaGraphExec_t runnable = nullptr;
  ~Rehearsal() {
    if (runnable) cudaGraphExecDestroy(runnable);
    if (stream) cudaStreamDestroy(stream);
  }
};

}  // namespace

void rehearse(void (*queue)(const void* context, CudaStream stream), const void* context) {
  Rehearsal rehearsal;
  check_cuda(cudaStreamCreateWithFlags(&rehearsal.stream, cudaStreamNonBlocking), "making a stream");
  begin_capture(rehearsal.stream, "recording a library's kernels");
  try {
    queue(context, rehearsal.stream);
  } catch (...) {
    abandon_capture(rehearsal.stream);
    throw;
  }
  rehearsal.runnable = end_capture(rehearsal.stream, "loading a library's kernels");
}

RehearsalMemory::RehearsalMemory(int64_t bytes) {
  check_cuda(cudaMalloc(&at_, static_cast<size_t>(bytes)), "taking memory to load a library's kernels");
}
RehearsalMemory::~RehearsalMemory() { cudaFree(at_); }
#else
void rehearse(void (*)(const void*, CudaStream), const void*) {}  // the shim has no code to load
RehearsalMemory::RehearsalMemory(int64_t) {}
RehearsalMemory::~RehearsalMemory() {}
#endif

}  // namespace headroom::cuda
