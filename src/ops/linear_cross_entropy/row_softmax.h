// The softmax of a row of logits while they are read.
#pragma once

#include <limits>

namespace headroom {

struct RowSoftmax {
  float largest = -std::numeric_limits<float>::infinity();
  float chosen = 0;  // the target's logit
  double sum = 0;    // of exp(logit - largest); NaN if a logit is not finite
};

}  // namespace headroom
