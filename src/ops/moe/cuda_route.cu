// Device code of the router. A warp chooses a token's experts. Blocks of 256 pairs then count their pairs per expert,
// prefix sums over blocks and experts turn the counts into positions, and each pair takes the position after earlier
// pairs of its block. This is the order of a counting sort, whatever the scheduling.
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/moe/cuda_kernels.h"

namespace headroom::cuda {

constexpr int kRouteThreads = 256;
constexpr int kCountedExperts = 2048;  // that a block counts at a time

// A logit and its expert; negative: none. Larger logits come first, then smaller experts.
struct Ranked {
  float value;
  int expert;
};
HR_DEVICE bool comes_before(const Ranked& a, const Ranked& b) {
  return a.value > b.value || (a.value == b.value && a.expert < b.expert);
}
HR_DEVICE Ranked earlier_of(const Ranked& a, const Ranked& b) {
  if (a.expert < 0) return b;
  return b.expert < 0 || comes_before(a, b) ? a : b;
}

// A number that sorts like the logit, with NaN last.
HR_DEVICE float rank_of(float logit) { return logit != logit ? __uint_as_float(0xff800000u) : logit; }

// The expert that follows `last` in the order of the logits; all lanes get it.
template <typename T>
HR_DEVICE Ranked next_expert(const T* logits, int experts, const Ranked& last) {
  Ranked best = {0, -1};
  for (int e = static_cast<int>(threadIdx.x) % kWarp; e < experts; e += kWarp) {
    const Ranked own = {rank_of(widen(logits[e])), e};
    if (last.expert >= 0 && !comes_before(last, own)) continue;
    best = earlier_of(best, own);
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float value = __shfl_xor_sync(kAllLanes, best.value, distance);
    best = earlier_of(best, {value, __shfl_xor_sync(kAllLanes, best.expert, distance)});
  }
  return best;
}

// Sum of exp(logits - largest) over all experts; all lanes get it.
template <typename T>
HR_DEVICE float partition(const T* logits, int experts, float largest) {
  float sum = 0;
  for (int e = static_cast<int>(threadIdx.x) % kWarp; e < experts; e += kWarp) sum += expf(widen(logits[e]) - largest);
  return reduce_warp(sum, Sum());
}

// One warp per token. Lane s keeps slots s, s + 32 ...
template <typename T>
__global__ void __launch_bounds__(kRouteThreads) route_tokens(RouteArgs args) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t token = first_index() / kWarp; token < args.tokens; token += index_stride() / kWarp) {
    const T* const logits = static_cast<const T*>(args.logits) + token * args.experts;
    float* const weights = args.weights + token * args.chosen;
    Ranked found = {0, -1};
    float largest = 0, sum = 0;
    for (int slot = 0; slot < args.chosen; ++slot) {
      found = next_expert(logits, args.experts, found);
      const float logit = widen(logits[found.expert]);
      if (slot == 0) largest = logit;
      const float weight = expf(logit - largest);
      sum += weight;
      if (slot % kWarp != lane) continue;
      weights[slot] = weight;
      args.expert_of[token * args.chosen + slot] = found.expert;
    }
    if (!args.normalised) sum = partition(logits, args.experts, largest);
    for (int slot = lane; slot < args.chosen; slot += kWarp) weights[slot] /= sum;
  }
}

// Counts the block's pairs in counts[expert][block].
__global__ void __launch_bounds__(kRouteThreads) count_pairs(RouteArgs args) {
  __shared__ int own[kCountedExperts];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t pair = first_index(), blocks = gridDim.x;
  const int expert = pair < args.tokens * args.chosen ? args.expert_of[pair] : -1;
  for (int from = 0; from < args.experts; from += kCountedExperts) {
    const int count = args.experts - from < kCountedExperts ? args.experts - from : kCountedExperts;
    for (int e = thread; e < count; e += kRouteThreads) own[e] = 0;
    __syncthreads();
    if (expert >= from && expert < from + count) atomicAdd(own + expert - from, 1);
    __syncthreads();
    for (int e = thread; e < count; e += kRouteThreads) args.counts[(from + e) * blocks + blockIdx.x] = own[e];
    __syncthreads();
  }
}

// Exclusive prefix sums of `count` numbers in place, by one warp, starting with `sum`; returns the sum of all.
HR_DEVICE int prefix_sums(int* numbers, int64_t count, int sum) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t from = 0; from < count; from += kWarp) {
    const int own = from + lane < count ? numbers[from + lane] : 0;
    int upto = own;
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const int other = __shfl_up_sync(kAllLanes, upto, static_cast<unsigned>(distance));
      if (lane >= distance) upto += other;
    }
    if (from + lane < count) numbers[from + lane] = sum + upto - own;
    sum += __shfl_sync(kAllLanes, upto, kWarp - 1);
  }
  return sum;
}

// Replaces an expert's counts by the number of its pairs in earlier blocks, and sets offsets[expert] to their total.
// One warp per expert.
__global__ void __launch_bounds__(kRouteThreads) sum_blocks(RouteArgs args, int64_t blocks) {
  const int64_t expert = first_index() / kWarp;
  if (expert >= args.experts) return;  // for all threads of the warp
  const int total = prefix_sums(args.counts + expert * blocks, blocks, 0);
  if (threadIdx.x % kWarp == 0) args.offsets[expert] = total;
}

// Replaces each expert's number of pairs by the start of its rows. One warp.
__global__ void __launch_bounds__(kWarp) sum_experts(RouteArgs args) {
  const int total = prefix_sums(args.offsets, args.experts, 0);
  if (threadIdx.x == 0) args.offsets[args.experts] = total;
}

// Stores the row of each pair.
__global__ void __launch_bounds__(kRouteThreads) place_pairs(RouteArgs args) {
  __shared__ int experts[kRoutePairs];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t pair = first_index(), blocks = gridDim.x;
  const bool there = pair < args.tokens * args.chosen;
  const int own = there ? args.expert_of[pair] : -1;
  experts[thread] = own;
  __syncthreads();
  if (!there) return;
  int earlier = 0;
  for (int other = 0; other < thread; ++other) earlier += experts[other] == own;
  args.rows[pair] = args.offsets[own] + args.counts[own * blocks + blockIdx.x] + earlier;
}

// The expert whose rows [offsets[e], offsets[e + 1]) hold `row`.
HR_DEVICE int expert_of(const int32_t* offsets, int experts, int32_t row) {
  int low = 0, high = experts;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (offsets[middle] <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// dlogits = p (g - sum p g), where g is the gradient with respect to the softmax p. The softmax is over the chosen
// experts, or over all experts with g zero for those not chosen. One warp per token.
template <typename T>
__global__ void __launch_bounds__(kRouteThreads) route_grad(RouteGradArgs args) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t token = first_index() / kWarp; token < args.tokens; token += index_stride() / kWarp) {
    const T* const logits = static_cast<const T*>(args.logits) + token * args.experts;
    const float* const dweights = args.dweights + token * args.chosen;
    const int32_t* const rows = args.rows + token * args.chosen;
    float largest = __uint_as_float(0xff800000u), sum = 0, mean = 0;
    for (int slot = lane; slot < args.chosen; slot += kWarp)
      largest = fmaxf(largest, widen(logits[expert_of(args.offsets, args.experts, rows[slot])]));
    largest = reduce_warp(largest, Max());
    for (int slot = lane; slot < args.chosen; slot += kWarp) {
      const float part = expf(widen(logits[expert_of(args.offsets, args.experts, rows[slot])]) - largest);
      sum += part;
      mean += part * dweights[slot];
    }
    sum = reduce_warp(sum, Sum());
    mean = reduce_warp(mean, Sum());
    if (!args.normalised) sum = partition(logits, args.experts, largest);
    mean /= sum;
    T* const dlogits = static_cast<T*>(args.dlogits) + token * args.experts;
    for (int e = lane; e < args.experts; e += kWarp) {
      const int32_t begin = args.offsets[e], end = args.offsets[e + 1];
      int slot = 0;
      while (slot < args.chosen && (rows[slot] < begin || rows[slot] >= end)) ++slot;
      const bool is_chosen = slot < args.chosen;
      const float p = is_chosen || !args.normalised ? expf(widen(logits[e]) - largest) / sum : 0.0f;
      dlogits[e] = narrow<T>(p * ((is_chosen ? dweights[slot] : 0.0f) - mean));
    }
  }
}

#ifdef __CUDACC_RTC__
template __global__ void route_tokens<float>(RouteArgs);
template __global__ void route_tokens<Bf16>(RouteArgs);
template __global__ void route_tokens<Half>(RouteArgs);
template __global__ void route_grad<float>(RouteGradArgs);
template __global__ void route_grad<Bf16>(RouteGradArgs);
template __global__ void route_grad<Half>(RouteGradArgs);
#else
namespace {

Grid warps(int64_t count) {
  Grid grid;
  grid.block = kRouteThreads;
  grid.x = (count * kWarp + kRouteThreads - 1) / kRouteThreads;
  return grid;
}

}  // namespace

void launch_route(FloatType type, const RouteArgs& args, CudaStream stream) {
  const int64_t blocks = (args.tokens * args.chosen + kRoutePairs - 1) / kRoutePairs;
  with_float_type(type, [&](auto zero) { launch(route_tokens<decltype(zero)>, warps(args.tokens), stream, args); });
  Grid pairs, one;
  pairs.x = blocks;
  pairs.block = kRoutePairs;
  one.block = kWarp;
  launch(count_pairs, pairs, stream, args);
  launch(sum_blocks, warps(args.experts), stream, args, blocks);
  launch(sum_experts, one, stream, args);
  launch(place_pairs, pairs, stream, args);
}

void launch_route_grad(FloatType type, const RouteGradArgs& args, CudaStream stream) {
  with_float_type(type, [&](auto zero) { launch(route_grad<decltype(zero)>, warps(args.tokens), stream, args); });
}
#endif

static_assert(kRoutePairs == kRouteThreads);

}  // namespace headroom::cuda
