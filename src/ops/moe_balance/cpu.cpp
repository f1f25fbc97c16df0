// Kernels of the load-balancing loss: plain loops, as there are only a few numbers per token.
#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/moe/shape.h"
#include "ops/moe_balance/sizes.h"
#include "ops/stream/float_types.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kTokens = 16;  // grain

// exp(logits - the largest) into `exponentials`; returns their sum.
template <typename T>
float exponentials_of(const T* logits, int64_t experts, float* exponentials) {
  float largest = static_cast<float>(logits[0]), sum = 0;
  for (int64_t e = 1; e < experts; ++e) largest = std::max(largest, static_cast<float>(logits[e]));
  for (int64_t e = 0; e < experts; ++e) sum += exponentials[e] = std::exp(static_cast<float>(logits[e]) - largest);
  return sum;
}

// Adds the counts, the probabilities and the number of the tokens in [begin, end) to `sums`, without padding.
template <typename T>
void sum_tokens(const KernelCall& call, int64_t begin, int64_t end, float* sums, float* exponentials) {
  const int64_t experts = call.inputs[BalanceInputs::logits].dims[2], seq = call.inputs[BalanceInputs::logits].dims[1],
                chosen = call.inputs[BalanceInputs::rows].dims[2];
  const T* logits = call.inputs[BalanceInputs::logits].as<T>();
  const int32_t *rows = call.inputs[BalanceInputs::rows].as<int32_t>(),
                *offsets = call.inputs[BalanceInputs::offsets].as<int32_t>();
  const int32_t* lengths = call.inputs[BalanceInputs::lengths].as<int32_t>();
  for (int64_t token = begin; token < end; ++token) {
    if (token % seq >= lengths[token / seq]) continue;
    const float total = exponentials_of(logits + token * experts, experts, exponentials);
    for (int64_t e = 0; e < experts; ++e) sums[experts + e] += exponentials[e] / total;
    for (int64_t pair = token * chosen; pair < (token + 1) * chosen; ++pair)
      sums[expert_of(offsets, experts, rows[pair])] += 1;
    sums[2 * experts] += 1;
  }
}

std::unique_ptr<CpuKernel> begin_kernel(const KernelSpec&) {
  return kernel_of(
      [](const KernelCall& call) { std::fill_n(call.outputs[0].as<float>(), call.outputs[0].count(), 0.0f); });
}

std::unique_ptr<CpuKernel> balance_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const int64_t experts = call.inputs[BalanceInputs::logits].dims[2],
                  tokens = call.inputs[BalanceInputs::logits].dims[0] * call.inputs[BalanceInputs::logits].dims[1];
    const int64_t length = balance_length(experts), each = balance_part_length(experts);
    float* const parts = reinterpret_cast<float*>(call.scratch.data());
    parallel_for(kBalanceParts, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t part = begin; part < end; ++part) {
        float* const sums = parts + part * each;
        std::fill_n(sums, length, 0.0f);
        const int64_t from = tokens * part / kBalanceParts, to = tokens * (part + 1) / kBalanceParts;
        with_float(call.inputs[BalanceInputs::logits].dtype,
                   [&](auto type) { sum_tokens<decltype(type)>(call, from, to, sums, sums + length); });
      }
    });
    const float* before = call.inputs[BalanceInputs::sums].as<float>();
    float* after = call.outputs[0].as<float>();
    for (int64_t i = 0; i < length; ++i) {
      float sum = before[i];
      for (int64_t part = 0; part < kBalanceParts; ++part) sum += parts[part * each + i];
      after[i] = sum;
    }
  });
}

// dlogits = p (g - sum p g) of one token, where g is `by_probability`. `dlogits` may be `logits`.
template <typename T>
void grad_token(const T* logits, const float* by_probability, int64_t experts, T* dlogits) {
  float largest = static_cast<float>(logits[0]), sum = 0, mean = 0;
  for (int64_t e = 1; e < experts; ++e) largest = std::max(largest, static_cast<float>(logits[e]));
  const auto exponential = [&](int64_t e) { return std::exp(static_cast<float>(logits[e]) - largest); };
  for (int64_t e = 0; e < experts; ++e) {
    const float part = exponential(e);
    sum += part;
    mean += part * by_probability[e];
  }
  mean /= sum;
  for (int64_t e = 0; e < experts; ++e) dlogits[e] = static_cast<T>(exponential(e) / sum * (by_probability[e] - mean));
}

template <typename T>
void balance_grad(const KernelCall& call) {
  const int64_t experts = call.inputs[BalanceGradInputs::logits].dims[2],
                seq = call.inputs[BalanceGradInputs::logits].dims[1];
  const int32_t* lengths = call.inputs[BalanceGradInputs::lengths].as<int32_t>();
  const float* by_probability = call.inputs[BalanceGradInputs::dsums].as<float>() + experts;
  parallel_for(call.inputs[BalanceGradInputs::logits].dims[0] * seq, kTokens, [&](int64_t begin, int64_t end, int) {
    for (int64_t token = begin; token < end; ++token) {
      T* const dlogits = call.outputs[0].as<T>() + token * experts;
      if (token % seq < lengths[token / seq])
        grad_token(call.inputs[BalanceGradInputs::logits].as<T>() + token * experts, by_probability, experts, dlogits);
      else
        std::fill_n(dlogits, experts, static_cast<T>(0.0f));
    }
  });
}

std::unique_ptr<CpuKernel> balance_grad_kernel(const KernelSpec& spec) {
  return kernel_of([dtype = spec.inputs[BalanceGradInputs::logits].dtype](const KernelCall& call) {
    with_float(dtype, [&](auto type) { balance_grad<decltype(type)>(call); });
  });
}

// The number of targets: labels >= 0, without the first of each row, which no position predicts.
double targets_of(const TensorView& labels) {
  int64_t targets = 0;
  for (int64_t at = 0; at < labels.count(); ++at) targets += at % labels.dims[1] != 0 && labels.as<int32_t>()[at] >= 0;
  return static_cast<double>(targets);
}

std::unique_ptr<CpuKernel> loss_kernel(const KernelSpec& spec) {
  return kernel_of([coefficient = spec.attrs.real("coefficient"),
                    accumulate = std::string(spec.attrs.text("accumulate", "always"))](const KernelCall& call) {
    const float* sums = call.inputs[BalanceLossInputs::sums].as<float>();
    const int64_t experts = experts_of_balance(call.inputs[BalanceLossInputs::sums].dims[0]);
    const double tokens = static_cast<double>(sums[2 * experts]);
    double product = 0;
    for (int64_t e = 0; e < experts; ++e)
      product += static_cast<double>(sums[e]) * static_cast<double>(sums[experts + e]);
    const double loss = tokens > 0 ? static_cast<double>(experts) * product / (tokens * tokens) : 0;
    double* losses = call.outputs[0].as<double>();
    if (overwrites(accumulate, call.trip)) std::fill_n(losses, call.outputs[0].count(), 0.0);
    losses[0] += coefficient * loss * targets_of(call.inputs[BalanceLossInputs::labels]);
  });
}

std::unique_ptr<CpuKernel> loss_grad_kernel(const KernelSpec& spec) {
  return kernel_of([coefficient = spec.attrs.real("coefficient")](const KernelCall& call) {
    const float* sums = call.inputs[BalanceLossGradInputs::sums].as<float>();
    const int64_t experts = experts_of_balance(call.inputs[BalanceLossGradInputs::sums].dims[0]);
    const double tokens = static_cast<double>(sums[2 * experts]);
    const double factor = tokens > 0 ? static_cast<double>(call.inputs[BalanceLossGradInputs::scale].as<float>()[0]) *
                                           targets_of(call.inputs[BalanceLossGradInputs::labels]) * coefficient *
                                           static_cast<double>(experts) / (tokens * tokens)
                                     : 0;
    float* dsums = call.outputs[0].as<float>();
    std::fill_n(dsums, balance_length(experts), 0.0f);
    for (int64_t e = 0; e < experts; ++e)
      dsums[experts + e] = static_cast<float>(factor * static_cast<double>(sums[e]));
  });
}

}  // namespace

void register_moe_balance_cpu(CpuKernels& kernels) {
  kernels.add("moe_balance_begin", reference_only<begin_kernel>());
  kernels.add("moe_balance", reference_only<balance_kernel>());
  kernels.add("moe_balance_grad", reference_only<balance_grad_kernel>());
  kernels.add("moe_balance_loss", reference_only<loss_kernel>());
  kernels.add("moe_balance_loss_grad", reference_only<loss_grad_kernel>());
}

}  // namespace headroom
