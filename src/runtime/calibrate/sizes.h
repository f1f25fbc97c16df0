// The shapes that a calibration measures: those in the steps of a device's models, and squares to interpolate between.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/op.h"

namespace headroom {

struct AttentionSizes {
  int64_t sequence, head_dim, batch = 1;
};

struct CalibrationSizes {
  std::vector<ProductShape> products;
  std::vector<ProductShape> decoding;  // a few rows, of 8-bit activations
  std::vector<ProductShape> narrow;    // the two products of an adapter of low rank, which move more than they multiply
  std::vector<ProductShape> residuals;  // sums of a layer with the residual stream
  std::vector<ProductShape> losses;     // chunks of the loss: rows, vocabulary, hidden size
  std::vector<AttentionSizes> attention;
  ProductShape warm_up{0, 0, 0};
  ProductShape before{0, 0, 0};               // runs before each group of timed calls; no rows: no product does
  ProductShape layer{0, 0, 0};                // rows, inner and hidden size of a layer run as a whole; no rows: not run
  int layer_sets = 0;                         // copies of it, which fill most of the buffer in fp32
  int64_t stream_rows = 0, stream_width = 0;  // of elementwise ops and norms; the width is a multiple of 64
  int64_t optimizer_elements = 0;
  int64_t softmax_rows = 0, softmax_vocabulary = 0;
  int64_t buffer_bytes = 0;      // of the arena, which all operands use in turn
  int64_t cold_bytes = 0;        // of copies of a cold operand, more than the caches hold
  double seconds_per_point = 0;  // including the preparation of the runs
  int launches_per_wait = 1;     // of every copy, before the host waits
  double most_seconds = 25;      // no point is timed again after that
};

// Layers of small and middling models.
CalibrationSizes cpu_sizes();
// Layers of models of 0.5 to 8 billion parameters, operands beyond the level 2 cache.
CalibrationSizes gpu_sizes();

}  // namespace headroom
