// Device code of the experts' load-balancing loss: one warp per token, whose logits are in a few cache lines that stay
// cached from one pass to the next.
#include "ops/moe_balance/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

constexpr int kBalanceWarps = 4;
constexpr int kBalanceThreads = kBalanceWarps * kWarp;
constexpr int kOwnExperts = 4;  // per lane at a time: one pass over the tokens covers 128 experts
constexpr int kLossThreads = 256;

HR_DEVICE int64_t warp_of_grid() { return int64_t{blockIdx.x} * kBalanceWarps + threadIdx.x / kWarp; }
HR_DEVICE int warp_lane() { return static_cast<int>(threadIdx.x) % kWarp; }

HR_DEVICE bool is_padding(const BalanceTokens& of, int64_t token) {
  const int64_t row = quotient(token, of.sequence);
  return token - row * of.sequence >= of.lengths[row];
}

// Turns a logit into a probability: exp(logit - largest) * inverse.
struct Softmax {
  float largest;
  float inverse;
  HR_DEVICE float of(float logit) const { return expf(logit - largest) * inverse; }
};

// The softmax of a token, computed by a warp.
template <typename T>
HR_DEVICE Softmax softmax_of(const T* logits, int experts) {
  float largest = widen(logits[0]), sum = 0;
  for (int e = warp_lane(); e < experts; e += kWarp) largest = fmaxf(largest, widen(logits[e]));
  largest = reduce_warp(largest, Max());
  for (int e = warp_lane(); e < experts; e += kWarp) sum += expf(widen(logits[e]) - largest);
  return {largest, 1.0f / reduce_warp(sum, Sum())};
}

// A warp sums the counts and probabilities of its tokens. Each lane owns experts, so the counts need no atomics.
template <typename T>
__global__ void __launch_bounds__(kBalanceThreads) sum_balance(BalanceArgs a) {
  const int64_t part = warp_of_grid();
  if (part >= a.parts) return;
  const int experts = a.of.experts, lane = warp_lane();
  const int64_t begin = a.of.tokens * part / a.parts, end = a.of.tokens * (part + 1) / a.parts;
  for (int first = 0; first < experts; first += kOwnExperts * kWarp) {
    float counts[kOwnExperts] = {}, probabilities[kOwnExperts] = {}, tokens = 0;
    int32_t from[kOwnExperts], to[kOwnExperts];
    HR_UNROLL for (int k = 0; k < kOwnExperts; ++k) {
      const int e = first + k * kWarp + lane;
      from[k] = e < experts ? a.offsets[e] : 0;
      to[k] = e < experts ? a.offsets[e + 1] : 0;
    }
    for (int64_t token = begin; token < end; ++token) {
      if (is_padding(a.of, token)) continue;
      tokens += 1;
      const T* const logits = static_cast<const T*>(a.of.logits) + token * experts;
      const Softmax softmax = softmax_of(logits, experts);
      HR_UNROLL for (int k = 0; k < kOwnExperts; ++k) {
        const int e = first + k * kWarp + lane;
        if (e < experts) probabilities[k] += softmax.of(widen(logits[e]));
      }
      for (int slot = 0; slot < a.chosen; ++slot) {
        const int32_t row = a.rows[token * a.chosen + slot];
        HR_UNROLL for (int k = 0; k < kOwnExperts; ++k) counts[k] += from[k] <= row && row < to[k] ? 1.0f : 0.0f;
      }
    }
    HR_UNROLL for (int k = 0; k < kOwnExperts; ++k) {
      const int64_t e = first + k * kWarp + lane;
      if (e >= experts) continue;
      a.sums_of_parts[e * a.parts + part] = counts[k];
      a.sums_of_parts[(experts + e) * a.parts + part] = probabilities[k];
    }
    if (first == 0 && lane == 0) a.sums_of_parts[int64_t{2} * experts * a.parts + part] = tokens;
  }
}

// A warp adds one sum over the parts.
__global__ void __launch_bounds__(kBalanceThreads) add_balance(BalanceArgs a) {
  const int64_t at = warp_of_grid();
  if (at >= int64_t{2} * a.of.experts + 1) return;
  float sum = 0;
  for (int64_t part = warp_lane(); part < a.parts; part += kWarp) sum += a.sums_of_parts[at * a.parts + part];
  sum = reduce_warp(sum, Sum());
  if (warp_lane() == 0) a.after[at] = a.before[at] + sum;
}

template <typename T>
__global__ void __launch_bounds__(kBalanceThreads) balance_grad(BalanceTokens of, const float* dsums, T* dlogits) {
  const int64_t token = warp_of_grid();
  if (token >= of.tokens) return;
  const int experts = of.experts, lane = warp_lane();
  const T* const logits = static_cast<const T*>(of.logits) + token * experts;
  T* const own = dlogits + token * experts;
  const float* const by_probability = dsums + experts;
  if (is_padding(of, token)) {
    for (int e = lane; e < experts; e += kWarp) own[e] = narrow<T>(0.0f);
    return;
  }
  const Softmax softmax = softmax_of(logits, experts);
  float mean = 0;
  for (int e = lane; e < experts; e += kWarp) mean += softmax.of(widen(logits[e])) * by_probability[e];
  mean = reduce_warp(mean, Sum());
  for (int e = lane; e < experts; e += kWarp)
    own[e] = narrow<T>(softmax.of(widen(logits[e])) * (by_probability[e] - mean));
}

// Computed by the whole block; every thread gets it.
HR_DEVICE double targets_of(const BalanceLossArgs& a, double* slots) {
  double targets = 0;
  for (int64_t i = threadIdx.x; i < a.count; i += kLossThreads)
    targets += i != quotient(i, a.sequence) * a.sequence && a.labels[i] >= 0 ? 1.0 : 0.0;
  return reduce_block(targets, slots, 0.0, Sum());
}

// One block: the work is one pass over the labels.
__global__ void __launch_bounds__(kLossThreads)
    balance_loss(BalanceLossArgs a, double* losses, int64_t length, bool overwrite) {
  __shared__ double slots[2][kWarp];
  const double targets = targets_of(a, slots[0]);
  double product = 0;
  for (int e = static_cast<int>(threadIdx.x); e < a.experts; e += kLossThreads)
    product += static_cast<double>(a.sums[e]) * static_cast<double>(a.sums[a.experts + e]);
  product = reduce_block(product, slots[1], 0.0, Sum());
  const double tokens = static_cast<double>(a.sums[2 * static_cast<int64_t>(a.experts)]);
  const double loss = tokens > 0 ? a.coefficient * targets * a.experts * product / (tokens * tokens) : 0.0;
  for (int64_t i = threadIdx.x; i < length; i += kLossThreads)
    if (overwrite || i == 0) losses[i] = (overwrite ? 0.0 : losses[i]) + (i == 0 ? loss : 0.0);
}

__global__ void __launch_bounds__(kLossThreads) balance_loss_grad(BalanceLossArgs a, const float* scale, float* dsums) {
  __shared__ double slots[kWarp];
  const double targets = targets_of(a, slots);
  const int64_t experts = a.experts;
  const double tokens = static_cast<double>(a.sums[2 * experts]);
  const double factor = tokens > 0 ? static_cast<double>(*scale) * targets * a.coefficient *
                                         static_cast<double>(experts) / (tokens * tokens)
                                   : 0.0;
  for (int64_t i = threadIdx.x; i <= 2 * experts; i += kLossThreads) {
    const bool probability = i >= experts && i < 2 * experts;
    dsums[i] = probability ? static_cast<float>(factor * static_cast<double>(a.sums[i - experts])) : 0.0f;
  }
}

#ifdef __CUDACC_RTC__
template __global__ void sum_balance<float>(BalanceArgs);
template __global__ void sum_balance<Bf16>(BalanceArgs);
template __global__ void sum_balance<Half>(BalanceArgs);
template __global__ void balance_grad<float>(BalanceTokens, const float*, float*);
template __global__ void balance_grad<Bf16>(BalanceTokens, const float*, Bf16*);
template __global__ void balance_grad<Half>(BalanceTokens, const float*, Half*);
#else
namespace {

// One warp per item.
Grid warps_for(int64_t items) { return {(items + kBalanceWarps - 1) / kBalanceWarps, 1, 1, kBalanceThreads, 0}; }

}  // namespace

void launch_balance(FloatType type, const BalanceArgs& args, CudaStream stream) {
  with_float_type(type, [&](auto zero) { launch(sum_balance<decltype(zero)>, warps_for(args.parts), stream, args); });
  launch(add_balance, warps_for(int64_t{2} * args.of.experts + 1), stream, args);
}

void launch_balance_grad(FloatType type, const BalanceTokens& of, const float* dsums, void* dlogits,
                         CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(balance_grad<T>, warps_for(of.tokens), stream, of, dsums, static_cast<T*>(dlogits));
  });
}

void launch_balance_loss(const BalanceLossArgs& args, double* losses, int64_t length, bool overwrite,
                         CudaStream stream) {
  launch(balance_loss, Grid{1, 1, 1, kLossThreads, 0}, stream, args, losses, length, overwrite);
}

void launch_balance_loss_grad(const BalanceLossArgs& args, const float* scale, float* dsums, CudaStream stream) {
  launch(balance_loss_grad, Grid{1, 1, 1, kLossThreads, 0}, stream, args, scale, dsums);
}
#endif

}  // namespace headroom::cuda
