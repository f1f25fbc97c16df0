// The places of the operands of the RMS norm and of its gradient.
#pragma once

namespace headroom {

// Not every call has a residual.
struct RmsNormInputs {
  enum : int { x, weight, residual };
};
// The accumulator is there if the weight is trained. An addend is the last input.
struct RmsNormGradInputs {
  enum : int { x, weight, dy, accumulator };
};

}  // namespace headroom
