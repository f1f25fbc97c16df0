// Launchers of the gated unit's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

enum class GateFunction { silu, gelu_tanh, gelu };

// h = f(gate) * up, `count` elements each; h may be gate or up.
void launch_swiglu(FloatType type, GateFunction function, const void* gate, const void* up, void* h, int64_t count,
                   int multiprocessors, CudaStream stream);

// dgate = dh up f'(gate), dup = dh f(gate); an output may be any one of the inputs.
void launch_swiglu_grad(FloatType type, GateFunction function, const void* gate, const void* up, const void* dh,
                        void* dgate, void* dup, int64_t count, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
