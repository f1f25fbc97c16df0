// The places of rotary's operands.
#pragma once

namespace headroom {

// `shift`, which not every call has, is the offset or the starts of segments.
struct RotaryInputs {
  enum : int { x, table, shift };
};

}  // namespace headroom
