// The timings of one point of a calibration.
#pragma once

#include <vector>

#include "runtime/calibrate/stopwatch.h"

namespace headroom {

class Samples {
 public:
  void add(const Timing& timing);
  bool empty() const { return quiet_.empty() && best_disturbed_ <= 0; }
  bool settled() const;                              // enough undisturbed ones
  bool disturbed() const { return quiet_.empty(); }  // no undisturbed one
  // The median of the undisturbed ones: nothing took their time but the machine's own ups and downs. Without any, the
  // least: what others took is in all of them. At least 1e-9; there is one.
  double seconds() const;

 private:
  std::vector<double> quiet_;
  double best_disturbed_ = 0;
};

}  // namespace headroom
