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

// Products of 8-bit codes that were not measured, with the time to make the codes, are this many times as fast as those
// of fp32: measured on a Zen 3 (docs/techniques/quantize-training.md).
inline constexpr double kInt8Gain = 1.5;
// The same for 8-bit activations with a weight in codes (docs/techniques/quantize-activations.md).
inline constexpr double kInt8BlocksGain = 1.3;

// The dtype whose products' measurements are used for this one: CPUs multiply f16 as f32, since they convert its tiles,
// and GPUs at the rate of bf16 if the profile has none of f16.
DType measured_dtype(const Profile& profile, DType dtype);

// The rates of one kind of product: the rows of a profile that have the key or, unless they are `apart`, none.
struct ProductRates {
  std::string_view key;
  bool apart = false;           // they do not follow from samples of other products
  bool any_vocabulary = false;  // outs do not count
};
inline constexpr ProductRates kOutputRates{"linear"}, kInputGradientRates{"linear_dx"},
    kWeightGradientRates{"linear_dw"};
inline constexpr ProductRates kResidualRates{"linear_residual", true};
inline constexpr ProductRates kLossGradientRates{"linear_cross_entropy_grad", true, true};

// Mean of the logarithms of the measured rates, as flops per second; 0 when nothing was measured.
double measured_rate(const Profile& profile, const ProductRates& rates, Multiplication how, const ProductShape& shape);

// The same for products that may not have been measured: fp32 operands multiplied as bf16 numbers, 8-bit codes. Throws
// InternalError if a dtype has no rate at all.
double product_rate(const Profile& profile, const ProductRates& rates, Multiplication how, const ProductShape& shape);

}  // namespace headroom
