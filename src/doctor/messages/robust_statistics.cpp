#include "doctor/messages/robust_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace headroom::doctor {
namespace {

// Ranks from 0; equal values get their mean rank.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) ranks[order[k]] = (static_cast<double>(i) + static_cast<double>(end - 1)) / 2;
    i = end;
  }
  return ranks;
}

std::vector<double> thinned(const std::vector<double>& values, size_t most) {
  if (values.size() <= most) return values;
  std::vector<double> kept;
  for (size_t i = 0; i < most; ++i) kept.push_back(values[i * (values.size() - 1) / (most - 1)]);
  return kept;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Trend theil_sen(const std::vector<double>& all_x, const std::vector<double>& all_y) {
  constexpr size_t kMost = 300;
  const std::vector<double> x = thinned(all_x, kMost), y = thinned(all_y, kMost);
  const size_t n = std::min(x.size(), y.size());
  Trend trend;
  if (n < 3) return trend;
  std::vector<double> slopes;
  double sign = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = i + 1; k < n; ++k) {
      if (x[k] > x[i]) slopes.push_back((y[k] - y[i]) / (x[k] - x[i]));
      sign += y[k] > y[i] ? 1 : y[k] < y[i] ? -1 : 0;
    }
  }
  trend.slope = median(slopes);
  trend.rise = trend.slope * (x[n - 1] - x[0]);
  std::vector<double> residuals(n);
  for (size_t i = 0; i < n; ++i) residuals[i] = y[i] - trend.slope * x[i];
  const double offset = median(residuals);
  for (double& residual : residuals) residual = std::abs(residual - offset);
  trend.noise = median(residuals);
  const double count = static_cast<double>(n);
  trend.score = sign / std::sqrt(count * (count - 1) * (2 * count + 5) / 18);
  return trend;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t n = std::min(a.size(), b.size());
  if (n < 3) return 0;
  const std::vector<double> ra = ranks(a), rb = ranks(b);
  const double mean = (static_cast<double>(n) - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < n; ++i) {
    ab += (ra[i] - mean) * (rb[i] - mean);
    aa += (ra[i] - mean) * (ra[i] - mean);
    bb += (rb[i] - mean) * (rb[i] - mean);
  }
  return aa <= 0 || bb <= 0 ? 0 : ab / std::sqrt(aa * bb);
}

}  // namespace headroom::doctor
