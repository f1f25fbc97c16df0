#include "ops/cuda/rehearsal.h"

#include "ops/cuda/device_language.cuh"

namespace headroom::cuda {

#if defined(__CUDACC__)
namespace {

// Closed on every way out.
struct Recording {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  ~Recording() {
    if (runnable) cudaGraphExecDestroy(runnable);
    if (graph) cudaGraphDestroy(graph);
    if (stream) cudaStreamDestroy(stream);
  }
};

}  // namespace

void rehearse(void (*queue)(const void* context, CudaStream stream), const void* context) {
  Recording recording;
  check_cuda(cudaStreamCreateWithFlags(&recording.stream, cudaStreamNonBlocking), "making a stream");
  check_cuda(cudaStreamBeginCapture(recording.stream, cudaStreamCaptureModeRelaxed), "recording a library's kernels");
  try {
    queue(context, recording.stream);
  } catch (...) {
    cudaStreamEndCapture(recording.stream, &recording.graph);
    cudaGetLastError();  // else the next launch would report it
    throw;
  }
  check_cuda(cudaStreamEndCapture(recording.stream, &recording.graph), "recording a library's kernels");
  check_cuda(cudaGraphInstantiate(&recording.runnable, recording.graph, 0), "loading a library's kernels");
  check_cuda(cudaGraphUpload(recording.runnable, recording.stream), "loading a library's kernels");
  check_cuda(cudaStreamSynchronize(recording.stream), "loading a library's kernels");
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
