// Stream capture by NVIDIA's runtime (CUDA programming guide, "CUDA Graphs"). Not in builds with the test shim.
#pragma once

#include "ops/cuda/launch.h"

struct CUgraphExec_st;

namespace headroom::cuda {

// Work that the thread queues on the stream from now on is recorded and does not run. `what` is the start of an error's
// message. Throws Error(run) with the driver's message.
void begin_capture(CudaStream stream, const char* what);
// Ends the capture. Returns the work as a graph on the device, with the code of its kernels loaded. Throws Error(run)
// and then keeps nothing.
CUgraphExec_st* end_capture(CudaStream stream, const char* what);
// Ends the capture and discards its work and errors.
void abandon_capture(CudaStream stream) noexcept;

}  // namespace headroom::cuda
