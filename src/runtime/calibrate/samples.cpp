#include "runtime/calibrate/samples.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr size_t kEnough = 3;
constexpr double kLeast = 1e-9;

}  // namespace

void Samples::add(const Timing& timing) {
  const double seconds = std::max(timing.seconds, kLeast);
  if (!timing.disturbed)
    quiet_.push_back(seconds);
  else
    best_disturbed_ = best_disturbed_ > 0 ? std::min(best_disturbed_, seconds) : seconds;
}

bool Samples::settled() const { return quiet_.size() >= kEnough; }

double Samples::seconds() const {
  if (quiet_.empty()) return std::max(best_disturbed_, kLeast);
  std::vector<double> sorted = quiet_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace headroom
