// Device code of Muon.
#include "ops/muon/cuda_kernels.h"

#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/updated_weight.cuh"

namespace headroom::cuda {

__global__ void muon_buffer(MuonArgs a) {
  const float clip = *a.clip;
  if (!usable_factor(clip)) return;
  Bf16* const x = static_cast<Bf16*>(a.x);
  for (int64_t i = first_index(); i < a.count; i += index_stride()) {
    const float g = a.g[i] * clip, buffer = fmaf(1.0f - a.momentum, g - a.buffer[i], a.buffer[i]);
    a.buffer[i] = buffer;
    x[i] = narrow<Bf16>(a.nesterov ? fmaf(a.momentum, buffer - g, g) : buffer);
  }
}

// One block per part.
__global__ void muon_squares(MuonArgs a) {
  __shared__ float slots[kWarp];
  const Bf16* const x = static_cast<const Bf16*>(a.x);
  const int64_t each = (a.count + kMuonNormParts - 1) / kMuonNormParts, begin = blockIdx.x * each;
  const int64_t end = begin + each < a.count ? begin + each : a.count;
  float sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum = fmaf(widen(x[i]), widen(x[i]), sum);
  sum = reduce_block(sum, slots, 0.0f, Sum());
  if (threadIdx.x == 0) a.norms[blockIdx.x] = sum;
}

// One block, with one thread per part.
__global__ void muon_norm(MuonArgs a) {
  __shared__ float slots[kWarp];
  const float sum = reduce_block(a.norms[threadIdx.x], slots, 0.0f, Sum());
  if (threadIdx.x == 0) a.norms[kMuonNormParts] = widen(narrow<Bf16>(fmaxf(a.least_norm, sqrtf(sum))));
}

__global__ void muon_divide(MuonArgs a) {
  Bf16* const x = static_cast<Bf16*>(a.x);
  const float norm = a.norms[kMuonNormParts];
  for (int64_t i = first_index(); i < a.count; i += index_stride()) x[i] = narrow<Bf16>(widen(x[i]) / norm);
}

__global__ void muon_scale(const Bf16* from, float factor, int64_t count, Bf16* to) {
  for (int64_t i = first_index(); i < count; i += index_stride()) to[i] = narrow<Bf16>(widen(from[i]) * factor);
}

template <typename W>
__global__ void muon_end(MuonArgs a) {
  if (!usable_factor(*a.clip)) return refresh_copy(static_cast<const W*>(a.w), a.copy, a.first, a.count);
  const double lr = static_cast<double>(a.hyper[kLearningRate]);
  const double decay = a.decay ? static_cast<double>(a.hyper[kWeightDecay]) : 0.0;
  const float kept = static_cast<float>(1.0 - lr * decay), rate = static_cast<float>(lr * a.rate_factor);
  const Bf16* const x = static_cast<const Bf16*>(a.x);
  BlockKeys keys(step_key(a.hyper, a.tensor));
  for (int64_t i = first_index(); i < a.count; i += index_stride()) {
    Floats<1> w = load_floats<1>(static_cast<W*>(a.w) + a.first + i);
    w.at[0] = fmaf(-rate, widen(x[i]), w.at[0] * kept);
    store_weight(static_cast<W*>(a.w), a.copy, keys, a.first + i, w);
  }
}

#ifdef __CUDACC_RTC__
template __global__ void muon_end<float>(MuonArgs);
template __global__ void muon_end<Bf16>(MuonArgs);
template __global__ void muon_end<Half>(MuonArgs);
#else
void launch_muon_begin(const MuonArgs& args, int multiprocessors, CudaStream stream) {
  const Grid elements = grid_over(args.count, multiprocessors);
  Grid parts, one;
  parts.x = kMuonNormParts;
  parts.block = 256;
  one.x = 1;
  one.block = kMuonNormParts;
  launch(muon_buffer, elements, stream, args);
  launch(muon_squares, parts, stream, args);
  launch(muon_norm, one, stream, args);
  launch(muon_divide, elements, stream, args);
}

void launch_muon_scale(const void* from, float factor, int64_t count, void* to, int multiprocessors,
                       CudaStream stream) {
  launch(muon_scale, grid_over(count, multiprocessors), stream, static_cast<const Bf16*>(from), factor, count,
         static_cast<Bf16*>(to));
}

void launch_muon_end(FloatType weight, const MuonArgs& args, int multiprocessors, CudaStream stream) {
  with_float_type(weight, [&](auto zero) {
    launch(muon_end<decltype(zero)>, grid_over(args.count, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
