#include "cost/product_rates.h"

#include "base/error.h"
#include "cost/call_seconds.h"
#include "ops/linear/fp8.h"
#include "ops/linear/int8.h"
#include "ops/linear/int8_blocks.h"

namespace headroom {
namespace {

ProductShape of_any_vocabulary(const ProductSample& sample, ProductShape shape) {
  shape.outs = sample.outs;
  return shape;
}

}  // namespace

double shape_distance(const Profile& profile, const ProductSample& sample, const ProductShape& shape) {
  const double r = gap(sample.rows, shape.rows), o = gap(sample.outs, shape.outs), i = gap(sample.ins, shape.ins);
  const double all = r * r + o * o + i * i;
  if (profile.facts.is_cpu()) return all;
  const double volume = (r + o + i) * (r + o + i) / 3;
  return volume + (all - volume) / 16;
}

DType measured_dtype(const Profile& profile, DType dtype) {
  if (dtype != DType::f16) return dtype;
  if (profile.facts.is_cpu()) return DType::f32;
  const auto in_f16 = [](const ProductSample& sample) { return sample.dtype == DType::f16; };
  return std::any_of(profile.products.begin(), profile.products.end(), in_f16) ? DType::f16 : DType::bf16;
}

double measured_rate(const Profile& profile, const ProductRates& rates, Multiplication how, const ProductShape& shape) {
  how.dtype = measured_dtype(profile, how.dtype);
  NearMean logarithms;
  for (const ProductSample& sample : profile.products) {
    if (sample.dtype != how.dtype || sample.multiply != how.multiply) continue;
    if (sample.op.empty() ? rates.apart : sample.op != rates.key) continue;
    const ProductShape from = rates.any_vocabulary ? of_any_vocabulary(sample, shape) : shape;
    logarithms.add(shape_distance(profile, sample, from), std::log(sample.flops_per_second));
  }
  return logarithms.empty() ? 0 : std::exp(logarithms.mean());
}

// fp8 at twice the rate of bf16, as NVIDIA states for its tensor cores. fp32 operands at the rate of bf16, or a third
// of it for bf16x3; on a GPU, which uses TF32 for bf16x3, half of it. A CPU without bf16 tiles multiplies the rounded
// numbers in fp32, two products instead of the three of bf16x3.
double product_rate(const Profile& profile, const ProductRates& rates, Multiplication how, const ProductShape& shape) {
  const bool of_codes = how.multiply == kMultiplyInt8 || how.multiply == kMultiplyInt8Blocks;
  if (of_codes) {  // they are made of f32 numbers, whatever the operands are stored in
    const double rate = measured_rate(profile, rates, {DType::f32, how.multiply}, shape);
    const double gain = how.multiply == kMultiplyInt8Blocks ? kInt8BlocksGain : kInt8Gain;
    return rate > 0 ? rate : gain * product_rate(profile, rates, {DType::f32, {}}, shape);
  }
  const bool fp8 = how.dtype == DType::bf16 && how.multiply == kMultiplyFp8;
  if (how.dtype != DType::f32 && !fp8) how.multiply = {};
  how.dtype = measured_dtype(profile, how.dtype);
  if (const double rate = measured_rate(profile, rates, how, shape); rate > 0) return rate;
  if (fp8) return 2 * product_rate(profile, rates, {DType::bf16, {}}, shape);
  if (!how.multiply.empty() && profile.facts.is_cpu() && !profile.facts.has_bf16_tiles()) {
    const double rate = product_rate(profile, rates, {DType::f32, {}}, shape);
    return how.multiply == "bf16x3" ? rate / 2 : rate;
  }
  HR_CHECK(!how.multiply.empty(), "profile {} has no rate for {} in {}", profile.name, rates.key,
           dtype_name(how.dtype));
  const double rate = product_rate(profile, rates, {DType::bf16, {}}, shape);
  return how.multiply == "bf16x3" ? rate / (profile.facts.is_cpu() ? 3 : 2) : rate;
}

}  // namespace headroom
