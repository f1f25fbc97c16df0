// Device code of elementwise updates.
#include "ops/update/cuda_kernels.h"

#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/updated_weight.cuh"

namespace headroom::cuda {

// f32.
struct Device {
  HR_DEVICE float set(float c) const { return c; }
  HR_DEVICE float add(float a, float b) const { return a + b; }
  HR_DEVICE float mul(float a, float b) const { return a * b; }
  HR_DEVICE float div(float a, float b) const { return a / b; }
  HR_DEVICE float mul_add(float a, float b, float c) const { return fmaf(a, b, c); }
  HR_DEVICE float neg_mul_add(float a, float b, float c) const { return fmaf(-a, b, c); }
  HR_DEVICE float sqrt(float a) const { return sqrtf(a); }
  HR_DEVICE float sign(float a) const { return a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : 0.0f; }
  HR_DEVICE float limit(float a) const { return a > 1.0f ? 1.0f : a < -1.0f ? -1.0f : a; }
};

#define HR_FORMULA HR_DEVICE
#include "ops/update/formulas-inl.h"
#undef HR_FORMULA

HR_DEVICE UpdateStep step_of(const UpdateArgs& a) {
  UpdateStep step;
  step.lr = a.rate * static_cast<double>(a.hyper[kLearningRate]);
  step.decay = a.decay ? static_cast<double>(a.hyper[kWeightDecay]) : 0.0;
  step.drawn = static_cast<double>(a.hyper[kDrawnLabels]);
  constexpr int64_t place[kOwnScalars] = {kOwnScalar[0], kOwnScalar[1], kOwnScalar[2], kOwnScalar[3],
                                          kOwnScalar[4], kOwnScalar[5], kOwnScalar[6]};
  for (int i = 0; i < kOwnScalars; ++i) step.own[i] = static_cast<double>(a.hyper[place[i]]);
  for (int i = 0; i < kUpdateNumbers; ++i) step.number[i] = a.number[i];
  return step;
}

struct Factors {
  float at[kUpdateFactors];
};

// 16 bytes of each f32 array per thread and iteration. Only the first thread of a block computes the factors, because
// f64 is slow on most GPUs.
template <typename W, typename F>
__global__ void update(UpdateArgs a) {
  __shared__ Factors shared;
  const float clip = *a.clip;
  if (threadIdx.x == 0) F::factors(step_of(a), shared.at);
  __syncthreads();
  const Factors factors = shared;
  if (!usable_factor(clip)) return refresh_copy(static_cast<const W*>(a.w), a.copy, 0, a.count);
  BlockKeys keys(step_key(a.hyper, a.tensor), a.first);
  for_runs<4>(a.count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    const Floats<N> g = load_floats<N>(a.g + i);
    Floats<N> w = load_floats<N>(static_cast<W*>(a.w) + i), states[F::kStates + 1];
    HR_UNROLL for (int k = 0; k < F::kStates; ++k) states[k] = load_floats<N>(a.states[k] + i);
    HR_UNROLL for (int j = 0; j < N; ++j) {
      float state[F::kStates + 1];
      HR_UNROLL for (int k = 0; k < F::kStates; ++k) state[k] = states[k].at[j];
      w.at[j] = F::at(Device(), factors.at, w.at[j], g.at[j] * clip, state);
      HR_UNROLL for (int k = 0; k < F::kStates; ++k) states[k].at[j] = state[k];
    }
    HR_UNROLL for (int k = 0; k < F::kStates; ++k) store_floats(a.states[k] + i, states[k]);
    store_weight(static_cast<W*>(a.w), a.copy, keys, i, w);
  });
}

#define HR_MAP HR_DEVICE
#include "base/dynamic_map-inl.h"
#undef HR_MAP

constexpr int kBlockThreads = static_cast<int>(kStateBlock);

// The code with the nearest value, among 256 values in ascending order.
HR_DEVICE uint8_t nearest(const float* values, float x) {
  int low = 0, high = 255;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (x <= 0.5f * (values[middle] + values[middle + 1]))
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<uint8_t>(low);
}

// One thread per element of a block of states, whose codes it reads and writes.
template <typename W, typename F>
__global__ void update_blocks(UpdateArgs a) {
  __shared__ Factors shared;
  __shared__ float values[2][kBlockThreads], slots[kWarp];  // values by code, of the unsigned and the signed map
  const float clip = *a.clip;
  const int thread = static_cast<int>(threadIdx.x);
  for (int map = 0; map < 2; ++map) values[map][thread] = static_cast<float>(value_of_code(map == 1, thread));
  if (thread == 0) F::factors(step_of(a), shared.at);
  __syncthreads();
  const Factors factors = shared;
  if (!usable_factor(clip)) return refresh_copy(static_cast<const W*>(a.w), a.copy, 0, a.count);
  BlockKeys keys(step_key(a.hyper, a.tensor), a.first);
  for (int64_t block = blockIdx.x; block * kBlockThreads < a.count; block += gridDim.x) {
    const int64_t i = block * kBlockThreads + thread;
    const bool inside = i < a.count;
    float states[F::kStates + 1];
    HR_UNROLL for (int k = 0; k < F::kStates; ++k) states[k] =
        inside ? values[F::kSigned >> k & 1][a.codes[k][i]] * a.absmax[k][block] : 0.0f;
    if (inside) {
      Floats<1> w = load_floats<1>(static_cast<W*>(a.w) + i);
      w.at[0] = F::at(Device(), factors.at, w.at[0], a.g[i] * clip, states);
      store_weight(static_cast<W*>(a.w), a.copy, keys, i, w);
    }
    HR_UNROLL for (int k = 0; k < F::kStates; ++k) {
      const float most = reduce_block(fabsf(states[k]), slots, 0.0f, Max());
      if (thread == 0) a.absmax[k][block] = most;
      const float scaled = most > 0.0f ? states[k] / most : 0.0f;
      if (inside) a.codes[k][i] = nearest(values[F::kSigned >> k & 1], scaled);
      __syncthreads();
    }
  }
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(number, type, ...)                   \
  template __global__ void update<float, type>(UpdateArgs); \
  template __global__ void update<Bf16, type>(UpdateArgs);  \
  template __global__ void update<Half, type>(UpdateArgs);
HR_UPDATES(HR_INSTANTIATE)
template __global__ void update_blocks<float, AdamUpdate<true>>(UpdateArgs);
template __global__ void update_blocks<Bf16, AdamUpdate<true>>(UpdateArgs);
template __global__ void update_blocks<Half, AdamUpdate<true>>(UpdateArgs);
template __global__ void update_blocks<float, LionUpdate>(UpdateArgs);
template __global__ void update_blocks<Bf16, LionUpdate>(UpdateArgs);
template __global__ void update_blocks<Half, LionUpdate>(UpdateArgs);
#else
void launch_blocks(UpdateFormula formula, FloatType weight, const UpdateArgs& args, int multiprocessors,
                   CudaStream stream) {
  Grid grid;
  grid.block = kBlockThreads;
  grid.x = (args.count + kStateBlock - 1) / kStateBlock;
  if (const int64_t most = int64_t{multiprocessors} * 8; grid.x > most) grid.x = most;
  with_float_type(weight, [&](auto zero) {
    using W = decltype(zero);
    if (formula == UpdateFormula::adamw) return launch(update_blocks<W, AdamUpdate<true>>, grid, stream, args);
    launch(update_blocks<W, LionUpdate>, grid, stream, args);
  });
}

void launch_update(UpdateFormula formula, FloatType weight, const UpdateArgs& args, bool in_blocks, int multiprocessors,
                   CudaStream stream) {
  if (in_blocks) return launch_blocks(formula, weight, args, multiprocessors, stream);
  with_float_type(weight, [&](auto zero) {
    using W = decltype(zero);
    const Grid grid = grid_over(args.count / 4 + 1, multiprocessors);
    switch (formula) {
#define HR_LAUNCH(number, type, ...) \
  case UpdateFormula::number:        \
    return launch(update<W, type>, grid, stream, args);
      HR_UPDATES(HR_LAUNCH)
#undef HR_LAUNCH
    }
  });
}
#endif

}  // namespace headroom::cuda
