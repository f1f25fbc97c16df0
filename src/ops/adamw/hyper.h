// The layout of the hyper-parameter vector f32[16] that the host fills before each update.
#pragma once

#include <cstdint>

namespace headroom {

constexpr int64_t kHyperCount = 16;

// Places in the vector; the rest is zero.
enum HyperIndex : int64_t {
  kLearningRate = 0,
  kWeightDecay = 1,
  kBiasCorrection1 = 2,      // 1 - beta1^t
  kSqrtBiasCorrection2 = 3,  // sqrt(1 - beta2^t)
  kLossScale = 4,            // 1 / target tokens of the global batch
  kMaxGradNorm = 5,          // 0 = no clipping
  kSeed = 6,                 // and 7: the bits of the run's seed (uint64)
  kStep = 8,                 // the bits of the step's number (uint32)
};

}  // namespace headroom
