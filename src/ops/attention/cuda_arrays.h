// The operands of a call in the form of the launchers and the library.
#pragma once

#include "ops/attention/cuda_kernels.h"
#include "ops/attention/shape.h"
#include "ops/cuda/kernel.h"

namespace headroom {

// For `attention` (q, k, v, ...; o, lse) and `attention_cached` (q, kcache, vcache, ...; o).
inline cuda::AttentionArrays attention_arrays(const KernelCall& call) {
  return {call.inputs[AttentionInputs::q].data, call.inputs[AttentionInputs::k].data,
          call.inputs[AttentionInputs::v].data, call.outputs[AttentionOutputs::o].data,
          call.outputs.size() == 2 ? call.outputs[AttentionOutputs::lse].as<float>() : nullptr};
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
          out(AttentionGradOutputs::dq),
          out(AttentionGradOutputs::dk),
          out(AttentionGradOutputs::dv),
          reinterpret_cast<float*>(call.scratch.data())};
}

}  // namespace headroom
