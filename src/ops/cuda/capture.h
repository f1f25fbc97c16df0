// Stream capture by NVIDIA's runtime (CUDA programming guide, "CUDA Graphs"). Not part of a build for the test shim.
#pragma once

#include "ops/cuda/launch.h"

struct CUgraphExec_st;

namespace headroom::cuda {

// What the thread queues on the stream from now on is recorded and does not run. `what` begins the words of an error.
// Throws Error(run) with the driver's words.
void begin_capture(CudaStream stream, const char* what);
// Ends it: the work as a graph on the device, with the code of its kernels loaded. Throws Error(run); nothing is kept
// then.
CUgraphExec_st* end_capture(CudaStream stream, const char* what);
// Ends it and forgets the work and its errors.
void abandon_capture(CudaStream stream) noexcept;

}  // namespace headroom::cuda
