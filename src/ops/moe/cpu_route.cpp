// The router: softmax over the experts' logits, the top_k largest, their weights, and the rows sorted by expert.
#include <cmath>
#include <limits>

#include "base/threads.h"
#include "ops/moe/operands.h"
#include "ops/moe/route_kernels.h"
#include "ops/moe/shape.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

constexpr int64_t kTokens = 16;  // grain

// The logit as a sort key: NaN comes last.
float rank(float logit) { return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit; }

// The expert after `last` in the order of descending logits, equal ones by index; the first one if `last` < 0.
template <typename T>
int64_t next_expert(const T* logits, int64_t experts, int64_t last) {
  const float bound = last < 0 ? 0 : rank(static_cast<float>(logits[last]));
  int64_t best = -1;
  float largest = 0;
  for (int64_t e = 0; e < experts; ++e) {
    const float value = rank(static_cast<float>(logits[e]));
    if (last >= 0 && !(value < bound || (value == bound && e > last))) continue;
    if (best >= 0 && !(value > largest)) continue;
    best = e;
    largest = value;
  }
  return best;
}

// Sum of exp(logits - largest) over all experts.
template <typename T>
float partition(const T* logits, int64_t experts, float largest) {
  float sum = 0;
  for (int64_t e = 0; e < experts; ++e) sum += std::exp(static_cast<float>(logits[e]) - largest);
  return sum;
}

// Writes the weights of one token, and its experts to `chosen_experts`.
template <typename T>
void route_token(const T* logits, int64_t experts, int64_t chosen, bool normalised, float* weights,
                 int32_t* chosen_experts) {
  int64_t expert = -1;
  float largest = 0, sum = 0;
  for (int64_t slot = 0; slot < chosen; ++slot) {
    expert = next_expert(logits, experts, expert);
    if (slot == 0) largest = static_cast<float>(logits[expert]);
    weights[slot] = std::exp(static_cast<float>(logits[expert]) - largest);
    chosen_experts[slot] = static_cast<int32_t>(expert);
    sum += weights[slot];
  }
  if (!normalised) sum = partition(logits, experts, largest);
  for (int64_t slot = 0; slot < chosen; ++slot) weights[slot] /= sum;
}

// Counting sort in place: `rows` holds the expert of each pair before, and the pair's row after.
void sort_pairs(int32_t* rows, int64_t pairs, int32_t* offsets, int64_t experts) {
  for (int64_t e = 0; e <= experts; ++e) offsets[e] = 0;
  for (int64_t pair = 0; pair < pairs; ++pair) ++offsets[rows[pair]];
  int32_t end = 0;
  for (int64_t e = 0; e <= experts; ++e) {
    const int32_t count = offsets[e];
    offsets[e] = end;
    end += count;
  }
  for (int64_t pair = 0; pair < pairs; ++pair) rows[pair] = offsets[rows[pair]]++;
  // Each offset is now the end of its expert's rows.
  for (int64_t e = experts; e > 0; --e) offsets[e] = offsets[e - 1];
  offsets[0] = 0;
}

template <typename T>
void route(const KernelCall& call, const RoutedShape& shape, bool normalised) {
  const T* logits = call.inputs[0].as<T>();
  const int64_t experts = call.inputs[0].dims.back();
  float* weights = call.outputs[RouteOutputs::weights].as<float>();
  int32_t* rows = call.outputs[RouteOutputs::rows].as<int32_t>();
  parallel_for(shape.tokens, kTokens, [&](int64_t begin, int64_t end, int) {
    for (int64_t token = begin; token < end; ++token)
      route_token(logits + token * experts, experts, shape.chosen, normalised, weights + token * shape.chosen,
                  rows + token * shape.chosen);
  });
  sort_pairs(rows, shape.pairs(), call.outputs[RouteOutputs::offsets].as<int32_t>(), experts);
}

// dlogits = p (g - sum p g). p is the softmax over the chosen experts if `normalised`, else over all experts; g is the
// gradient with respect to p, zero for experts that were not chosen. `dlogits` may be `logits`.
template <typename T>
void grad_token(const T* logits, const float* dweights, const int32_t* rows, const int32_t* offsets, int64_t experts,
                int64_t chosen, bool normalised, T* dlogits) {
  float largest = -std::numeric_limits<float>::infinity(), sum = 0, mean = 0;
  const auto exponential = [&](int64_t e) { return std::exp(static_cast<float>(logits[e]) - largest); };
  for (int64_t slot = 0; slot < chosen; ++slot)
    largest = std::max(largest, static_cast<float>(logits[expert_of(offsets, experts, rows[slot])]));
  for (int64_t slot = 0; slot < chosen; ++slot) {
    const float part = exponential(expert_of(offsets, experts, rows[slot]));
    sum += part;
    mean += part * dweights[slot];
  }
  if (!normalised) sum = partition(logits, experts, largest);
  mean /= sum;
  for (int64_t e = 0; e < experts; ++e) {
    int64_t slot = 0;
    while (slot < chosen && (rows[slot] < offsets[e] || rows[slot] >= offsets[e + 1])) ++slot;
    const bool is_chosen = slot < chosen;
    const float p = is_chosen || !normalised ? exponential(e) / sum : 0;
    dlogits[e] = static_cast<T>(p * ((is_chosen ? dweights[slot] : 0) - mean));
  }
}

template <typename T>
void route_grad(const KernelCall& call, const RoutedShape& shape, bool normalised) {
  const int64_t experts = call.inputs[RouteGradInputs::logits].dims.back();
  parallel_for(shape.tokens, kTokens, [&](int64_t begin, int64_t end, int) {
    for (int64_t token = begin; token < end; ++token)
      grad_token(call.inputs[RouteGradInputs::logits].as<T>() + token * experts,
                 call.inputs[RouteGradInputs::dweights].as<float>() + token * shape.chosen,
                 call.inputs[RouteGradInputs::rows].as<int32_t>() + token * shape.chosen,
                 call.inputs[RouteGradInputs::offsets].as<int32_t>(), experts, shape.chosen, normalised,
                 call.outputs[0].as<T>() + token * experts);
  });
}

}  // namespace

std::unique_ptr<CpuKernel> make_route(const KernelSpec& spec) {
  return kernel_of([shape = routed_shape(spec.outputs[RouteOutputs::rows]), dtype = spec.inputs[0].dtype,
                    normalised = spec.attrs.integer("normalised") != 0](const KernelCall& call) {
    with_float(dtype, [&](auto type) { route<decltype(type)>(call, shape, normalised); });
  });
}

std::unique_ptr<CpuKernel> make_route_grad(const KernelSpec& spec) {
  return kernel_of([shape = routed_shape(spec.inputs[RouteGradInputs::rows]),
                    dtype = spec.inputs[RouteGradInputs::logits].dtype,
                    normalised = spec.attrs.integer("normalised") != 0](const KernelCall& call) {
    with_float(dtype, [&](auto type) { route_grad<decltype(type)>(call, shape, normalised); });
  });
}

}  // namespace headroom
