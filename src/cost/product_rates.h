// Rates of matrix products: the mean of a profile's measured ones, by how far their shapes are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "cost/profile.h"
#include "ir/op.h"

namespace headroom {

// What a product's operands are, and how they are multiplied (attribute "multiply").
struct Multiplication {
  DType dtype = DType::f32;
  std::string_view multiply;
};

// log2(a / b); what is below 1 counts as 1.
inline double gap(int64_t a, int64_t b) {
  return std::log2(static_cast<double>(std::max<int64_t>(1, a)) / static_cast<double>(std::max<int64_t>(1, b)));
}

// Sums up values, each weighted by the inverse square of a distance that is given squared.
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

// How far a sample is from a shape, squared: Euclidean in the base-2 logarithms of rows, outs and ins. On a GPU what
// shapes of one volume differ in counts a quarter: any of them fills the multiprocessors, and what moving the operands
// of a thin one takes is counted beside the arithmetic.
double shape_distance(const Profile& profile, const ProductSample& sample, const ProductShape& shape);

// The dtype whose measurements stand for this one: f16 is multiplied as f32 by CPUs, which convert its tiles, and at
// the rate of bf16 by GPUs.
DType measured_dtype(const Profile& profile, DType dtype);

// Mean of the logarithms of the measured rates of an op, as flops per second; 0 when nothing was measured. The
// vocabulary of linear_cross_entropy_grad does not count.
double measured_rate(const Profile& profile, std::string_view op, Multiplication how, const ProductShape& shape);

// The same for what may not have been measured: fp32 operands multiplied as bf16 numbers. Throws InternalError when a
// dtype has no rate at all.
double product_rate(const Profile& profile, std::string_view op, Multiplication how, const ProductShape& shape);

}  // namespace headroom
