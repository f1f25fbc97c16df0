// Device code of SGD.
#include "ops/sgd/cuda_kernels.h"

#include "ops/cuda/launch.cuh"
#include "ops/cuda/updated_weight.cuh"
#include "ops/step_scalars.h"

namespace headroom::cuda {

// 16 bytes of g and the buffer per thread and round.
template <typename W>
__global__ void sgd(SgdArgs a) {
  const float clip = *a.clip, lr = a.hyper[kLearningRate], decay = a.decay ? a.hyper[kWeightDecay] : 0.0f;
  if (!usable_factor(clip)) return;
  BlockKeys keys(step_key(a.hyper, a.tensor));
  for_runs<4>(a.count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> g = load_floats<N>(a.g + i), w = load_floats<N>(static_cast<W*>(a.w) + i);
    HR_UNROLL for (int j = 0; j < N; ++j) g.at[j] = fmaf(decay, w.at[j], g.at[j] * clip);
    Floats<N> move = g;
    if (a.buffer) {
      Floats<N> buffer = load_floats<N>(a.buffer + i);
      HR_UNROLL for (int j = 0; j < N; ++j) {
        buffer.at[j] = fmaf(buffer.at[j], a.momentum, g.at[j]);
        move.at[j] = a.nesterov ? fmaf(buffer.at[j], a.momentum, g.at[j]) : buffer.at[j];
      }
      store_floats(a.buffer + i, buffer);
    }
    HR_UNROLL for (int j = 0; j < N; ++j) w.at[j] = fmaf(-lr, move.at[j], w.at[j]);
    store_weight(static_cast<W*>(a.w), static_cast<Bf16*>(a.copy), keys, i, w);
  });
}

#ifdef __CUDACC_RTC__
template __global__ void sgd<float>(SgdArgs);
template __global__ void sgd<Bf16>(SgdArgs);
#else
void launch_sgd(FloatType weight, const SgdArgs& args, int multiprocessors, CudaStream stream) {
  with_float_type(weight, [&](auto zero) {
    launch(sgd<decltype(zero)>, grid_over(args.count / 4 + 1, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
