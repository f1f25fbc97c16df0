// The places of the operands of the position embedding and of its gradient.
#pragma once

namespace headroom {

// `shift`, which not every call has, is the offset or the starts of segments.
struct PositionInputs {
  enum : int { x, table, shift };
};
// Not every call has starts.
struct PositionGradInputs {
  enum : int { dy, accumulator, starts };
};

}  // namespace headroom
