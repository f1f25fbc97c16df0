// The places of the operands of the layer norm and of its gradient.
#pragma once

namespace headroom {

struct LayerNormInputs {
  enum : int { x, weight, bias };
};
// Then the accumulators of what is trained (trained.h) and the addend, if there are any.
struct LayerNormGradInputs {
  enum : int { x, weight, dy, optional };
};

}  // namespace headroom
