#include "ops/cuda/rehearsal.h"

#include "ops/cuda/capture.h"
#include "ops/cuda/device_language.cuh"

#if !defined(__CUDACC__)
#include <new>
#endif

namespace headroom::cuda {

#if defined(__CUDACC__)
namespace {

// Destroyed on every path.
struct Rehearsal {
  cudaStream_t stream = nullptr;
  cudaGraphExec_t runnable = nullptr;
  ~Rehearsal() {
    if (runnable) cudaGraphExecDestroy(runnable);
    if (stream) cudaStreamDestroy(stream);
  }
};

// Clears the error, because otherwise the next launch would report it.
void forget_failure() { cudaGetLastError(); }

void record_and_load(void (*queue)(const void* context, CudaStream stream), const void* context) {
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

}  // namespace

void rehearse(void (*queue)(const void* context, CudaStream stream), const void* context) {
  try {
    record_and_load(queue, context);
  } catch (...) {
    forget_failure();
    throw;
  }
}

RehearsalMemory::RehearsalMemory(int64_t bytes) {
  const cudaError_t status = cudaMalloc(&at_, static_cast<size_t>(bytes));
  if (status != cudaSuccess) forget_failure();
  check_cuda(status, "taking memory to load a library's kernels");
}
RehearsalMemory::~RehearsalMemory() { cudaFree(at_); }
#else
namespace {

constexpr std::align_val_t kAlignment{256};

}  // namespace

void rehearse(void (*queue)(const void* context, CudaStream stream), const void* context) {
  const LoadingOnly loading;
  queue(context, nullptr);
}
RehearsalMemory::RehearsalMemory(int64_t bytes) : at_(::operator new(static_cast<size_t>(bytes), kAlignment)) {}
RehearsalMemory::~RehearsalMemory() { ::operator delete(at_, kAlignment); }
#endif

}  // namespace headroom::cuda
