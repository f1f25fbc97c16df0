#include "ops/cuda/capture.h"

#include "ops/cuda/device_language.cuh"

#if defined(__CUDACC__)
namespace headroom::cuda {
namespace {

struct Recorded {
  cudaGraph_t graph = nullptr;
  ~Recorded() {
    if (graph) cudaGraphDestroy(graph);
  }
};

}  // namespace

void begin_capture(CudaStream stream, const char* what) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), what);
}

CUgraphExec_st* end_capture(CudaStream stream, const char* what) {
  Recorded recorded;
  check_cuda(cudaStreamEndCapture(stream, &recorded.graph), what);
  cudaGraphExec_t runnable = nullptr;
  check_cuda(cudaGraphInstantiate(&runnable, recorded.graph, 0), what);
  int status = cudaGraphUpload(runnable, stream);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
  if (status != cudaSuccess) cudaGraphExecDestroy(runnable);
  check_cuda(status, what);
  return runnable;
}

void abandon_capture(CudaStream stream) noexcept {
  Recorded recorded;
  cudaStreamEndCapture(stream, &recorded.graph);
  cudaGetLastError();  // otherwise the next launch would report it
}

}  // namespace headroom::cuda
#endif
