// Launchers of the device code that draws labels.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// The rows of logits of one chunk, and the labels of all rows.
struct DeviceDraw {
  const float* logits = nullptr;
  int64_t rows = 0;
  int64_t vocabulary = 0;
  int64_t stride = 0;     // elements from one row of logits to the next
  int64_t first_row = 0;  // index of the chunk's first row
  int64_t sequence = 0;   // positions of a sequence
  int64_t batch_row = 0;  // the first sequence's row of the global batch
  bool shift = true;      // a row predicts the next position's label
  float softcap = 0;      // c > 0: a logit l becomes c tanh(l / c)
  uint64_t key = 0;       // the operation's part of the key of its draws
  const float* hyper = nullptr;
  const int32_t* labels = nullptr;
  int32_t* drawn = nullptr;
};

// drawn = labels, for `count` labels.
void launch_keep_labels(const int32_t* labels, int32_t* drawn, int64_t count, int multiprocessors, CudaStream stream);

// Draws the labels that the rows predict, if hyper[kDrawnLabels] is above 0.
void launch_draw_labels(const DeviceDraw& draw, CudaStream stream);

}  // namespace headroom::cuda
