// Mean and standard deviation of one figure over several runs or steps.
#pragma once

#include <cmath>
#include <vector>

namespace headroom::test {

struct Moments {
  std::vector<double> values;
  double mean() const {
    double sum = 0;
    for (double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double deviation() const {
    double sum = 0;
    for (double value : values) sum += (value - mean()) * (value - mean());
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
};

}  // namespace headroom::test
