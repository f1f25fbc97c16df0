// Device code of fake quantisation: one warp per group of a weight, and per token.
#include "ops/fake_quantize/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

constexpr int kGridWarps = 8;                   // warps per block
constexpr float kLeastScale = 1.17549435e-38f;  // 2^-126
constexpr float kLowCode = -128, kHighCode = 127;

HR_DEVICE int warp_lane() { return static_cast<int>(threadIdx.x) % kWarp; }
HR_DEVICE int64_t first_warp() { return int64_t{blockIdx.x} * kGridWarps + static_cast<int>(threadIdx.x) / kWarp; }

HR_DEVICE float larger(float a, float b) { return a > b ? a : b; }
HR_DEVICE float smaller(float a, float b) { return a < b ? a : b; }
HR_DEVICE float clamped(float steps, float low, float high) { return smaller(larger(low, steps), high); }

template <typename T>
HR_DEVICE float element(const T* x, int64_t i) {
  return load_floats<1>(x + i).at[0];
}

// The range of a group or a token, including 0; `fault` is 0, or NaN if an element is not finite.
struct Span {
  float least, most, fault;
};

template <typename T>
HR_DEVICE Span span_of(const T* x, int64_t count) {
  Span span = {0, 0, 0};
  for (int64_t i = warp_lane(); i < count; i += kWarp) {
    const float v = element(x, i);
    span.least = smaller(span.least, v), span.most = larger(span.most, v), span.fault += v - v;
  }
  return {-reduce_warp(-span.least, Max()), reduce_warp(span.most, Max()), reduce_warp(span.fault, Sum())};
}

template <typename W>
HR_DEVICE float scale_of_group(const W* w, const WeightGridArgs& a) {
  const Span span = span_of(w, a.group);
  return larger(larger(span.most, -span.least) / ((a.high - a.low) / 2), kLeastScale) + span.fault;
}

template <typename W, typename Y>
__global__ void round_weight(WeightGridArgs a) {
  const int64_t group = first_warp();
  if (group >= a.groups) return;
  const W* const w = static_cast<const W*>(a.weight) + group * a.group;
  const float scale = scale_of_group(w, a), inverse = 1 / scale;
  for (int64_t i = warp_lane(); i < a.group; i += kWarp) {
    const float code = clamped(rintf(element(w, i) * inverse), a.low, a.high);
    store_floats(static_cast<Y*>(a.y) + group * a.group + i, Floats<1>{{code * scale}});
  }
}

template <typename W>
__global__ void mask_weight(WeightGridArgs a) {
  const int64_t group = first_warp();
  if (group >= a.groups) return;
  const W* const w = static_cast<const W*>(a.weight) + group * a.group;
  const float inverse = 1 / scale_of_group(w, a);
  for (int64_t i = warp_lane(); i < a.group; i += kWarp) {
    const float steps = rintf(element(w, i) * inverse);
    if (!(steps > a.low && steps < a.high)) a.gradient[group * a.group + i] = 0;
  }
}

template <typename X>
__global__ void quantize_tokens(TokenGridArgs a) {
  const int64_t token = first_warp();
  if (token >= a.tokens) return;
  const X* const x = static_cast<const X*>(a.x) + token * a.features;
  const Span span = span_of(x, a.features);
  const float scale = larger((span.most - span.least) / (kHighCode - kLowCode), kLeastScale);
  const float zero = clamped(kLowCode - rintf(span.least / scale), kLowCode, kHighCode), inverse = 1 / scale;
  for (int64_t i = warp_lane(); i < a.features; i += kWarp) {
    const float code = clamped(rintf(element(x, i) * inverse) + zero, kLowCode, kHighCode);
    a.codes[token * a.features + i] = static_cast<int8_t>(code);
  }
  if (warp_lane() != 0) return;
  a.grid[2 * token] = scale + span.fault;
  a.grid[2 * token + 1] = zero;
}

template <typename Y>
__global__ void dequantize_tokens(TokenGridArgs a) {
  const int64_t token = first_warp();
  if (token >= a.tokens) return;
  const float scale = a.grid[2 * token], zero = a.grid[2 * token + 1];
  for (int64_t i = warp_lane(); i < a.features; i += kWarp) {
    const int64_t at = token * a.features + i;
    const float steps = static_cast<float>(a.codes[at]) - zero;
    store_floats(static_cast<Y*>(a.y) + at, Floats<1>{{steps * scale}});
  }
}

template <typename D, typename X>
__global__ void mask_codes(CodeMaskArgs a) {
  for (int64_t i = first_index(); i < a.count; i += index_stride()) {
    const float code = static_cast<float>(a.codes[i]);
    const float dy = element(static_cast<const D*>(a.dy), i);
    store_floats(static_cast<X*>(a.dx) + i, Floats<1>{{code > kLowCode && code < kHighCode ? dy : 0.0f}});
  }
}

#ifdef __CUDACC_RTC__
template __global__ void round_weight<float, float>(WeightGridArgs);
template __global__ void round_weight<float, Bf16>(WeightGridArgs);
template __global__ void round_weight<float, Half>(WeightGridArgs);
template __global__ void round_weight<Bf16, float>(WeightGridArgs);
template __global__ void round_weight<Half, float>(WeightGridArgs);
template __global__ void round_weight<Bf16, Bf16>(WeightGridArgs);
template __global__ void round_weight<Half, Half>(WeightGridArgs);
template __global__ void mask_weight<float>(WeightGridArgs);
template __global__ void mask_weight<Bf16>(WeightGridArgs);
template __global__ void mask_weight<Half>(WeightGridArgs);
template __global__ void quantize_tokens<float>(TokenGridArgs);
template __global__ void quantize_tokens<Bf16>(TokenGridArgs);
template __global__ void quantize_tokens<Half>(TokenGridArgs);
template __global__ void dequantize_tokens<float>(TokenGridArgs);
template __global__ void dequantize_tokens<Bf16>(TokenGridArgs);
template __global__ void dequantize_tokens<Half>(TokenGridArgs);
template __global__ void mask_codes<float, float>(CodeMaskArgs);
template __global__ void mask_codes<float, Bf16>(CodeMaskArgs);
template __global__ void mask_codes<float, Half>(CodeMaskArgs);
template __global__ void mask_codes<Bf16, float>(CodeMaskArgs);
template __global__ void mask_codes<Half, float>(CodeMaskArgs);
template __global__ void mask_codes<Bf16, Bf16>(CodeMaskArgs);
template __global__ void mask_codes<Half, Half>(CodeMaskArgs);
#else
namespace {

// One warp per item.
Grid warp_grid(int64_t count) {
  Grid grid;
  grid.x = (count + kGridWarps - 1) / kGridWarps;
  grid.block = kGridWarps * kWarp;
  return grid;
}

}  // namespace

void launch_round_weight(FloatType weight_type, FloatType y_type, const WeightGridArgs& args, CudaStream stream) {
  with_float_types(weight_type, y_type, [&](auto w, auto y) {
    launch(round_weight<decltype(w), decltype(y)>, warp_grid(args.groups), stream, args);
  });
}

void launch_mask_weight(FloatType weight_type, const WeightGridArgs& args, CudaStream stream) {
  with_float_type(weight_type, [&](auto w) { launch(mask_weight<decltype(w)>, warp_grid(args.groups), stream, args); });
}

void launch_quantize_tokens(FloatType type, const TokenGridArgs& args, CudaStream stream) {
  with_float_type(type, [&](auto x) { launch(quantize_tokens<decltype(x)>, warp_grid(args.tokens), stream, args); });
}

void launch_dequantize_tokens(FloatType type, const TokenGridArgs& args, CudaStream stream) {
  with_float_type(type, [&](auto y) { launch(dequantize_tokens<decltype(y)>, warp_grid(args.tokens), stream, args); });
}

void launch_mask_codes(FloatType dy_type, FloatType dx_type, const CodeMaskArgs& args, int multiprocessors,
                       CudaStream stream) {
  with_float_types(dy_type, dx_type, [&](auto dy, auto dx) {
    launch(mask_codes<decltype(dy), decltype(dx)>, grid_over(args.count, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
