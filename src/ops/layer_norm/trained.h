// Which parameters a layer_norm_grad node trains: the bits of its attribute "train".
#pragma once

#include <cstdint>

#include "ir/attrs.h"

namespace headroom {

constexpr int64_t kTrainsWeight = 1;
constexpr int64_t kTrainsBias = 2;

// The number of accumulators among the node's inputs: the weight's comes first, then the bias's.
inline int trained_count(const Attrs& attrs) {
  const int64_t train = attrs.integer("train");
  return ((train & kTrainsWeight) != 0 ? 1 : 0) + ((train & kTrainsBias) != 0 ? 1 : 0);
}

}  // namespace headroom
