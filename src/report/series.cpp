#include "report/series.h"

#include <algorithm>

namespace headroom::report {

void Series::add(double x, double y) {
  last_ = y;
  if (!points_.empty() && points_.back().count < each_) {
    Point& at = points_.back();
    at = {x, at.sum + y, std::min(at.least, y), std::max(at.most, y), at.count + 1};
    return;
  }
  if (points_.size() == kMost) {
    for (size_t i = 0; i < kMost / 2; ++i) {
      const Point &a = points_[2 * i], &b = points_[2 * i + 1];
      points_[i] = {b.x, a.sum + b.sum, std::min(a.least, b.least), std::max(a.most, b.most), a.count + b.count};
    }
    points_.resize(kMost / 2);
    each_ *= 2;
  }
  points_.push_back({x, y, y, y, 1});
}

double Series::least() const {
  double value = points_.empty() ? 0 : points_.front().least;
  for (const Point& point : points_) value = std::min(value, point.least);
  return value;
}

double Series::most() const {
  double value = points_.empty() ? 0 : points_.front().most;
  for (const Point& point : points_) value = std::max(value, point.most);
  return value;
}

double Series::mean() const {
  double sum = 0;
  size_t count = 0;
  for (const Point& point : points_) sum += point.sum, count += point.count;
  return count ? sum / static_cast<double>(count) : 0;
}

}  // namespace headroom::report
