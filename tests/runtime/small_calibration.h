// A calibration with small operands, for tests of what it measures, not of how fast things are.
#pragma once

#include "runtime/calibrate/sizes.h"

namespace headroom {

inline CalibrationSizes small_calibration() {
  CalibrationSizes sizes;
  sizes.products = {{8, 64, 64}, {16, 64, 128}};
  sizes.decoding = {{1, 64, 64}};
  sizes.narrow = {{8, 16, 64}};
  sizes.residuals = {{8, 64, 64}};
  sizes.losses = {{8, 96, 64}};
  sizes.attention = {{8, 64}};
  sizes.warm_up = {8, 64, 64}, sizes.before = {8, 64, 64};
  sizes.layer = {8, 128, 64}, sizes.layer_sets = 2;
  sizes.stream_rows = 4, sizes.stream_width = 64;
  sizes.optimizer_elements = 256;
  sizes.softmax_rows = 4, sizes.softmax_vocabulary = 64;
  sizes.buffer_bytes = int64_t{8} << 20;
  sizes.cold_bytes = int64_t{64} << 10;
  sizes.seconds_per_point = 0;
  return sizes;
}

}  // namespace headroom
