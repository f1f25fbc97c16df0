// The operands of a call in the form of the launchers and the library.
#pragma once

#include "ops/attention/cuda_kernels.h"
#include "ops/attention/shape.h"
#include "ops/cuda/kernel.h"

namespace headroom {

// For `attention` (q, k, v, ...; o, lse) and `attention_cached` (q, kcache, vcache, ...; o).
inline cuda::AttentionArrays attention_arrays(const KernelCall& call) {
  return {call.inputs[0].data, call.inputs[1].data, call.inputs[2].data, call.outputs[0].data,
          call.outputs.size() == 2 ? call.outputs[1].as<float>() : nullptr};
}

// For `attention_grad` (q, k, v, o, lse, do, ...; dq, dk, dv).
inline cuda::AttentionGradArrays attention_grad_arrays(const KernelCall& call) {
  using Inputs = AttentionGradInputs;
  const auto in = [&](size_t i) { return call.inputs[i].data; };
  const auto out = [&](size_t i) { return call.outputs[i].data; };
  return {in(Inputs::q),
          in(Inputs::k),
          in(Inputs::v),
          in(Inputs::o),
          call.inputs[Inputs::lse].as<float>(),
          in(Inputs::cotangent),
          out(0),
          out(1),
          out(2),
          reinterpret_cast<float*>(call.scratch.data())};
}

}  // namespace headroom
