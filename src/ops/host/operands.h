// The places of next_batch's results.
#pragma once

namespace headroom {

// `optional`: the first of those that the attributes ask for.
struct BatchOutputs {
  enum : int { ids, labels, optional };
};

}  // namespace headroom
