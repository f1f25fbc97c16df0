// Launchers of the device code of the loss.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// The label that a row of logits predicts: with `shift` the next position's, else its own. -100: none.
struct DeviceTargets {
  const int32_t* labels = nullptr;
  int64_t sequence = 0;  // positions
  bool shift = true;
};

// Narrow logits per row that a block keeps in registers from the loss to the gradient.
constexpr int64_t kHeldLogits = 32768;

// The rows of logits of one chunk.
struct DeviceLoss {
  void* logits = nullptr;
  int64_t rows = 0;
  int64_t vocabulary = 0;
  int64_t stride = 0;  // elements from one row to the next: rows start at multiples of 256 bytes
  DeviceTargets targets;
  int64_t first_row = 0;     // index of the chunk's first row
  float softcap = 0;         // c > 0: a logit l becomes c tanh(l / c)
  double* losses = nullptr;  // of all rows: -log softmax(logits)[target], 0 without a target
  double* hits = nullptr;    // of all rows, or null: 1 if no logit is above the target's, else 0
  const float* scale = nullptr;
};

// Losses and hits of the rows of `logits`. A logit that is not finite, or a target outside the vocabulary, makes the
// loss NaN. With `gradient` the start of each row is overwritten with scale * (softmax - onehot) in `type`, or zeros
// without a target. bf16 logits need a bf16 gradient.
void launch_loss(const DeviceLoss& loss, FloatType logits, bool gradient, FloatType type, CudaStream stream);

// sums[0] [+]= sum of the losses, sums[1] [+]= number of targets, sums[2] [+]= sum of the hits if there are any.
void launch_loss_sums(const DeviceTargets& targets, int64_t rows, const double* losses, const double* hits,
                      double* sums, bool overwrite, CudaStream stream);

}  // namespace headroom::cuda
