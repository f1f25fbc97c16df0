// The places of the operands of the ops that send tokens to experts and bring them back.
#pragma once

namespace headroom {

struct RouteOutputs {
  enum : int { weights, rows, offsets };
};
struct RouteGradInputs {
  enum : int { logits, dweights, rows, offsets };
};
struct DispatchInputs {
  enum : int { x, rows };
};
// Weights are there with attribute "weighted". A residual is the last input.
struct CombineInputs {
  enum : int { z, rows, weights };
};
struct CombineGradInputs {
  enum : int { dy, z, rows, weights };
};
struct CombineGradOutputs {
  enum : int { dz, dweights };
};

}  // namespace headroom
