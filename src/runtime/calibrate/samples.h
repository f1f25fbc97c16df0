// The timings of one point of a calibration.
#pragma once

#include <vector>

#include "runtime/calibrate/stopwatch.h"

namespace headroom {

class Samples {
 public:
  void add(const Timing& timing);
  bool empty() const { return quiet_.empty() && best_disturbed_ <= 0; }
  bool settled() const;                              // there are enough undisturbed ones
  bool disturbed() const { return quiet_.empty(); }  // there is no undisturbed one
  // The median of the undisturbed ones. If there is none, the smallest, since other programs took time in all of them.
  // At least 1e-9; there must be a timing.
  double seconds() const;

 private:
  std::vector<double> quiet_;
  double best_disturbed_ = 0;
};

}  // namespace headroom
