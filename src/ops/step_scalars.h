// The layout of the vector of a step's scalars, f32[16], that the host fills before each update: graphs call it
// "hyper".
#pragma once

#include <cstdint>

namespace headroom {

constexpr int64_t kHyperCount = 16;

// Indices of the scalars of every run; the other elements are the optimizer's own scalars, or zero.
enum HyperIndex : int64_t {
  kLearningRate = 0,
  kWeightDecay = 1,
  kLossScale = 4,    // 1 / target tokens of the global batch, times the loss scale of fp16
  kMaxGradNorm = 5,  // 0 = no clipping
  kSeed = 6,         // and 7: the bits of the run's seed (uint64)
  kStep = 8,         // the bits of the step's number (uint32)
  // In a pass that estimates the curvature, for which labels are drawn (ops/draw_labels): their number in the global
  // batch. 0: the pass is a step.
  kDrawnLabels = 14,
  kUnscale = 15,  // 1 / the loss scale
};

// Indices of an optimizer's own scalars, in the order in which it names them (optim/optimizer.h).
constexpr int64_t kOwnScalars = 7;
constexpr int64_t kOwnScalar[kOwnScalars] = {2, 3, 9, 10, 11, 12, 13};

}  // namespace headroom
