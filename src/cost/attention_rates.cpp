#include "cost/attention_rates.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "cost/product_rates.h"
#include "ops/attention/shape.h"

namespace headroom {
namespace {

// 0 if no rate is for these kernels, this dtype and this direction.
double mean_rate(const Profile& profile, std::span<const AttentionRate> rates, std::string_view kernels,
                 const OpCall& call, AttentionPass pass) {
  const ConcreteType& q = queries_of(call);
  const int64_t head_dim = q.dims.back() / std::max<int64_t>(1, call.attrs.integer("heads"));
  const DType dtype = q.dtype == DType::f16 ? DType::f32 : q.dtype;  // its tiles are converted, on any device
  NearMean logarithms;
  for (const AttentionRate& rate : rates) {
    const double flops = pass == AttentionPass::backward ? rate.backward : rate.forward;
    if (rate.dtype != dtype || rate.kernels != kernels || flops <= 0) continue;
    const double s = rate.sequence > 0 ? gap(rate.sequence, q.dims[1]) : 0;
    const double h = rate.head_dim > 0 ? gap(rate.head_dim, head_dim) : 0;
    logarithms.add(s * s + h * h, std::log(flops));
  }
  return logarithms.empty() ? 0 : std::exp(logarithms.mean());
}

}  // namespace

double measured_attention_rate(const Profile& profile, std::string_view kernels, const OpCall& call,
                               AttentionPass pass) {
  return mean_rate(profile, profile.attention_kernels, kernels, call, pass);
}

double attention_rate(const Profile& profile, const OpCall& call, AttentionPass pass) {
  if (const std::string_view kernels = call.attrs.text("kernels"); !kernels.empty())
    if (const double rate = measured_attention_rate(profile, kernels, call, pass); rate > 0) return rate;
  const double rate = mean_rate(profile, profile.attention, {}, call, pass);
  HR_CHECK(rate > 0, "profile {} has no attention rate for {}", profile.name, dtype_name(queries_of(call).dtype));
  return rate;
}

}  // namespace headroom
