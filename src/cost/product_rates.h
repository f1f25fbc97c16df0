// Rates of matrix products: the mean of a profile's measured ones, weighted by the distance of their shapes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "cost/profile.h"
#include "ir/op.h"

namespace headroom {

// The types of a product's operands, and how they are multiplied (attribute "multiply").
struct Multiplication {
  DType dtype = DType::f32;
  std::string_view multiply;
};

// log2(a / b); values below 1 count as 1.
inline double gap(int64_t a, int64_t b) {
  return std::log2(static_cast<double>(std::max<int64_t>(1, a)) / static_cast<double>(std::max<int64_t>(1, b)));
}

// A mean of values, each weighted by the inverse square of a distance that is given squared.
class NearMean {
 public:
  void add(double distance, double value) {
    const double weight = 1.0 / (distance * distance + 1e-6);
    weight_ += weight;
    sum_ += weight * value;
  }
  bool empty() const { return weight_ <= 0; }
  double mean() const { return sum_ / weight_; }

 private:
  double weight_ = 0, sum_ = 0;
};

// The squared distance of a sample from a shape: Euclidean in the base-2 logarithms of rows, outs and ins. On a GPU
// differences between shapes of equal volume count a quarter: any of them fills the multiprocessors, and the time to
// move the operands of a thin one is counted in addition to the arithmetic.
double shape_distance(const Profile& profile, const ProductSample& sample, const ProductShape& shape);

// The dtype whose measurements are used for this one: CPUs multiply f16 as f32, since they convert its tiles, and GPUs
// at the rate of bf16.
DType measured_dtype(const Profile& profile, DType dtype);

// Mean of the logarithms of the measured rates of an op, as flops per second; 0 when nothing was measured. The
// vocabulary of linear_cross_entropy_grad does not count.
double measured_rate(const Profile& profile, std::string_view op, Multiplication how, const ProductShape& shape);

// The same for products that may not have been measured: fp32 operands multiplied as bf16 numbers. Throws InternalError
// if a dtype has no rate at all.
double product_rate(const Profile& profile, std::string_view op, Multiplication how, const ProductShape& shape);

}  // namespace headroom
