// A curve of any length in bounded memory: neighbouring points are merged, two into one, whenever there are too many.
#pragma once

#include <cstddef>
#include <vector>

namespace headroom::report {

class Series {
 public:
  struct Point {
    double x = 0;  // of its last value
    double sum = 0;
    double least = 0;
    double most = 0;
    size_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };

  // `x` ascends; both finite.
  void add(double x, double y);
  const std::vector<Point>& points() const { return points_; }
  bool empty() const { return points_.empty(); }
  double last() const { return last_; }
  double least() const;
  double most() const;
  double mean() const;

 private:
  static constexpr size_t kMost = 512;

  std::vector<Point> points_;
  size_t each_ = 1;  // values in a full point
  double last_ = 0;
};

}  // namespace headroom::report
