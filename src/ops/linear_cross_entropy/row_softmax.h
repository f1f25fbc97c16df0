// The softmax of a row of logits while they are read.
#pragma once

#include <cmath>
#include <limits>

namespace headroom {

struct RowSoftmax {
  float largest = -std::numeric_limits<float>::infinity();
  float chosen = 0;  // the target's logit
  double sum = 0;    // of exp(logit - largest); NaN if a logit is not finite

  // -log softmax of the target.
  double loss() const { return static_cast<double>(largest) - static_cast<double>(chosen) + std::log(sum); }
  bool hit() const { return chosen >= largest; }
};

}  // namespace headroom
