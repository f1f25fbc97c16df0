// Device code of the rotary embedding.
#include "ops/rotary/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

constexpr int kTurnRun = 8;

HR_DEVICE int64_t position_of(const RotaryArgs& a, int64_t row) {
  const int64_t sequence = quotient(row, a.seq);
  int64_t position = row - sequence * a.seq;
  if (a.offset) position += a.offset[sequence * a.offset_step];
  if (a.starts) position -= a.starts[row];
  return clamp_index(position, a.table_rows);
}

// Each thread rotates 8 pairs of a head, or copies 8 channels that are not rotated. The heads of a row share a row of
// the table, which stays in the L1 cache.
template <typename T, bool kWhole>
__global__ void rotary(RotaryArgs a) {
  constexpr int N = kTurnRun;
  const int64_t half = a.turned / 2, tail = a.head_dim - a.turned;
  const int64_t pairs = (half + N - 1) / N, runs = pairs + (tail + N - 1) / N, per_row = runs * a.heads;
  for (int64_t item = first_index(); item < a.rows * per_row; item += index_stride()) {
    const int64_t row = quotient(item, per_row), head = quotient(item - row * per_row, runs);
    const int64_t run = item - row * per_row - head * runs, at = (row * a.heads + head) * a.head_dim;
    const T* const x = static_cast<const T*>(a.x) + at;
    T* const y = static_cast<T*>(a.y) + at;
    if (run >= pairs) {
      const int64_t i = (run - pairs) * N;
      store_row<kWhole>(y + a.turned, i, tail, widen(load_row<kWhole, N>(x + a.turned, i, tail)));
      continue;
    }
    const int64_t i = run * N;
    const Raw<T, N> low = load_row<kWhole, N>(x, i, half), high = load_row<kWhole, N>(x + half, i, half);
    const float* const angles = a.table + position_of(a, row) * a.turned;
    const Floats<N> cosine = widen(load_row<kWhole, N>(angles, i, half));
    const Floats<N> sine = widen(load_row<kWhole, N>(angles + half, i, half));
    const Floats<N> u = widen(low), v = widen(high);
    Floats<N> first, second;
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const float s = sine.at[j] * a.sign;
      first.at[j] = u.at[j] * cosine.at[j] - v.at[j] * s;
      second.at[j] = v.at[j] * cosine.at[j] + u.at[j] * s;
    }
    store_row<kWhole>(y, i, half, first);
    store_row<kWhole>(y + half, i, half, second);
  }
}

// The angle is rounded to f32 before its cosine and sine are taken, as on the CPU.
__global__ void rope_table(const float* frequencies, int64_t half, float amplitude, int64_t positions, float* table) {
  for (int64_t item = first_index(); item < positions * half; item += index_stride()) {
    const int64_t position = quotient(item, half), i = item - position * half;
    const float angle = static_cast<float>(position) * frequencies[i];
    table[position * 2 * half + i] = cosf(angle) * amplitude;
    table[position * 2 * half + half + i] = sinf(angle) * amplitude;
  }
}

#ifdef __CUDACC_RTC__
template __global__ void rotary<float, true>(RotaryArgs);
template __global__ void rotary<float, false>(RotaryArgs);
template __global__ void rotary<Bf16, true>(RotaryArgs);
template __global__ void rotary<Half, true>(RotaryArgs);
template __global__ void rotary<Bf16, false>(RotaryArgs);
template __global__ void rotary<Half, false>(RotaryArgs);
#else
void launch_rotary(FloatType type, const RotaryArgs& args, int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    const bool whole = args.head_dim % kTurnRun == 0 && args.turned % (2 * kTurnRun) == 0;
    const int64_t runs = (args.head_dim + kTurnRun - 1) / kTurnRun;
    launch(whole ? rotary<T, true> : rotary<T, false>, grid_over(args.rows * args.heads * runs, multiprocessors),
           stream, args);
  });
}

void launch_rope_table(const float* frequencies, int64_t half, float amplitude, int64_t positions, float* table,
                       int multiprocessors, CudaStream stream) {
  launch(rope_table, grid_over(positions * half, multiprocessors), stream, frequencies, half, amplitude, positions,
         table);
}
#endif

}  // namespace headroom::cuda
