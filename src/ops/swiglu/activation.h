// Which function the gated unit applies to its gate.
#pragma once

#include "base/error.h"
#include "ir/attrs.h"

namespace headroom {

enum class GateActivation { silu, gelu_tanh, gelu };

// Attribute "activation" of swiglu and swiglu_grad: silu (when absent), gelu_tanh or gelu.
inline GateActivation gate_activation(const Attrs& attrs) {
  const std::string_view text = attrs.text("activation", "silu");
  if (text == "gelu_tanh") return GateActivation::gelu_tanh;
  if (text == "gelu") return GateActivation::gelu;
  HR_CHECK(text == "silu", "swiglu: activation is silu, gelu_tanh or gelu, not '{}'", text);
  return GateActivation::silu;
}

}  // namespace headroom
