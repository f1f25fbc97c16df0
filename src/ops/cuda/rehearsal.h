// Work of outside libraries queued for show: their code is loaded, nothing runs.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Calls queue(context, stream) with a stream that records instead of running, turns what was recorded into an
// executable graph, which loads the code of its kernels, and drops it. Only addresses that look like device memory are
// needed. Throws Error(run) with the driver's words.
void rehearse(void (*queue)(const void* context, CudaStream stream), const void* context);

}  // namespace headroom::cuda
