// Device code of AdamW.
#include "ops/adamw/cuda_kernels.h"

#include "ops/adamw/hyper.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/updated_weight.cuh"

namespace headroom::cuda {

// The scalars of a step, computed in f64 and rounded to f32 once.
struct AdamWScalars {
  float clip;
  float keep;  // 1 - lr * weight_decay
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;  // lr / bias_correction1
  float sqrt_correction;
  float eps;
  uint64_t key;
};

HR_DEVICE AdamWScalars scalars_of(const AdamWArgs& a) {
  const double lr = static_cast<double>(a.hyper[kLearningRate]), decay = static_cast<double>(a.hyper[kWeightDecay]);
  AdamWScalars s;
  s.clip = *a.clip;
  s.keep = static_cast<float>(a.decay ? 1.0 - lr * decay : 1.0);
  s.beta1 = static_cast<float>(a.beta1);
  s.one_minus_beta1 = static_cast<float>(1.0 - a.beta1);
  s.beta2 = static_cast<float>(a.beta2);
  s.one_minus_beta2 = static_cast<float>(1.0 - a.beta2);
  s.step_size = static_cast<float>(lr / static_cast<double>(a.hyper[kBiasCorrection1]));
  s.sqrt_correction = a.hyper[kSqrtBiasCorrection2];
  s.eps = static_cast<float>(a.eps);
  s.key = step_key(a.hyper, a.tensor);
  return s;
}

// 16 bytes of g, m and v per thread and round. The first thread of a block computes the scalars: f64 is slow on most
// GPUs.
template <typename W>
__global__ void adamw(AdamWArgs a) {
  __shared__ AdamWScalars shared;
  if (threadIdx.x == 0) shared = scalars_of(a);
  __syncthreads();
  const AdamWScalars s = shared;
  if (!usable_factor(s.clip)) return;
  BlockKeys keys(s.key);
  for_runs<4>(a.count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    const Floats<N> g = load_floats<N>(a.g + i);
    Floats<N> m = load_floats<N>(a.m + i), v = load_floats<N>(a.v + i), w = load_floats<N>(static_cast<W*>(a.w) + i);
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const float clipped = g.at[j] * s.clip;
      m.at[j] = fmaf(m.at[j], s.beta1, clipped * s.one_minus_beta1);
      v.at[j] = fmaf(v.at[j], s.beta2, clipped * clipped * s.one_minus_beta2);
      const float move = m.at[j] / (sqrtf(v.at[j]) / s.sqrt_correction + s.eps);
      w.at[j] = fmaf(-s.step_size, move, w.at[j] * s.keep);
    }
    store_floats(a.m + i, m);
    store_floats(a.v + i, v);
    store_weight(static_cast<W*>(a.w), static_cast<Bf16*>(a.shadow), keys, i, w);
  });
}

#ifdef __CUDACC_RTC__
template __global__ void adamw<float>(AdamWArgs);
template __global__ void adamw<Bf16>(AdamWArgs);
#else
void launch_adamw(FloatType weight, const AdamWArgs& args, int multiprocessors, CudaStream stream) {
  with_float_type(weight, [&](auto zero) {
    launch(adamw<decltype(zero)>, grid_over(args.count / 4 + 1, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
