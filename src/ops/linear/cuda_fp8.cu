// Device code that rounds bf16 matrices to fp8: finds the largest element of a matrix, then writes the codes.
#include "ops/linear/cuda_fp8.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

constexpr int kFp8Run = 16, kFp8Tile = 64, kFp8Block = 256;

// A format's largest finite number is 1.75 * 2^kTop, with the code kMost.
struct E4m3 {
  static constexpr int kMantissa = 3, kBias = 7, kTop = 8;
  static constexpr uint32_t kMost = 0x7e, kNan = 0x7f;
};
struct E5m2 {
  static constexpr int kMantissa = 2, kBias = 15, kTop = 15;
  static constexpr uint32_t kMost = 0x7b, kNan = 0x7f;
};

struct Fp8Args {
  const Bf16* from;
  int64_t rows, cols;
  uint8_t* codes;
  float* scale;
  const uint32_t* parts;
  int64_t part_count;
};

// Rounds to nearest even and clamps to the largest finite number. Infinities become NaN, so that divergence shows.
template <typename F>
HR_DEVICE uint32_t fp8_code(float x) {
  constexpr int kDrop = 23 - F::kMantissa;
  constexpr uint32_t kLeast = static_cast<uint32_t>(128 - F::kBias) << 23;  // the smallest normal number
  constexpr uint32_t kSteps = static_cast<uint32_t>(151 - F::kBias - F::kMantissa) << 23;
  const uint32_t bits = __float_as_uint(x), sign = bits >> 24 & 0x80u, size = bits & 0x7fffffffu;
  if (size >= 0x7f800000u) return sign | F::kNan;
  uint32_t code;
  if (size >= kLeast)
    code = ((size + (1u << (kDrop - 1)) - 1 + (size >> kDrop & 1u)) >> kDrop) -
           (static_cast<uint32_t>(127 - F::kBias) << F::kMantissa);
  else  // subnormal: the float addition rounds to the format's fixed step
    code = __float_as_uint(__fadd_rn(__uint_as_float(size), __uint_as_float(kSteps))) - kSteps;
  return sign | (code < F::kMost ? code : F::kMost);
}

// The exponent of the power of two that scales the largest magnitude, bits of a bf16, to the top of the format.
template <typename F>
HR_DEVICE int fp8_exponent(uint32_t most) {
  if (most == 0) return 0;
  const int field = static_cast<int>(most >> 7), own = (field > 0 ? field : 1) - 127;
  const int exponent = F::kTop - own - ((most & 127u) > 96u ? 1 : 0);
  return exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
}

HR_DEVICE float power_of_two(int exponent) { return __uint_as_float(static_cast<uint32_t>(exponent + 127) << 23); }

// Finds each block's largest finite magnitude, as bits of a bf16.
__global__ void __launch_bounds__(kFp8Block) fp8_largest(const Bf16* from, int64_t count, uint32_t* parts) {
  __shared__ uint32_t slots[kWarp];
  uint32_t most = 0;
  const auto include = [&](uint32_t half) { most = half < 0x7f80u && half > most ? half : most; };
  for (int64_t i = first_index(); i < count / kFp8Run; i += index_stride()) {
    const Raw<Bf16, kFp8Run> raw = load_raw<kFp8Run>(from + i * kFp8Run);
    HR_UNROLL for (int k = 0; k < raw.kWords; ++k) {
      include(raw.word[k] & 0x7fffu);
      include(raw.word[k] >> 16 & 0x7fffu);
    }
  }
  most = reduce_block(most, slots, 0u, Max());
  if (threadIdx.x == 0) parts[blockIdx.x] = most;
}

// Every thread of the block gets the factor; one thread of the grid stores its inverse.
template <typename F>
HR_DEVICE float fp8_factor(const Fp8Args& a, uint32_t* slots) {
  uint32_t most = 0;
  for (int64_t i = threadIdx.x; i < a.part_count; i += blockDim.x) most = Max()(most, a.parts[i]);
  const int exponent = fp8_exponent<F>(reduce_block(most, slots, 0u, Max()));
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.scale = power_of_two(-exponent);
  return power_of_two(exponent);
}

template <typename F>
__global__ void __launch_bounds__(kFp8Block) fp8_codes(Fp8Args a) {
  __shared__ uint32_t slots[kWarp];
  const float factor = fp8_factor<F>(a, slots);
  const int64_t runs = a.rows * a.cols / kFp8Run;
  for (int64_t i = first_index(); i < runs; i += index_stride()) {
    const Floats<kFp8Run> x = load_floats<kFp8Run>(a.from + i * kFp8Run);
    uint32_t words[kFp8Run / 4] = {};
    HR_UNROLL for (int j = 0; j < kFp8Run; ++j) words[j / 4] |= fp8_code<F>(x.at[j] * factor) << (j % 4 * 8);
    store_words<16>(a.codes + i * kFp8Run, words);
  }
}

// Writes codes [cols, rows] in tiles of 64 x 64. A tile is written by columns into shared memory, whose rows are 17
// words apart, and read by rows.
template <typename F>
__global__ void __launch_bounds__(kFp8Block) fp8_codes_transposed(Fp8Args a) {
  constexpr int kPitch = kFp8Tile / 4 + 1, kEach = 8, kLoads = kFp8Tile * kFp8Tile / kEach / kFp8Block;
  __shared__ uint32_t slots[kWarp];
  __shared__ uint32_t tile[kFp8Tile * kPitch];
  const float factor = fp8_factor<F>(a, slots);
  const int64_t across = (a.cols + kFp8Tile - 1) / kFp8Tile, down = (a.rows + kFp8Tile - 1) / kFp8Tile;
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t t = blockIdx.x; t < across * down; t += gridDim.x) {
    const int64_t row0 = quotient(t, across) * kFp8Tile, col0 = (t - quotient(t, across) * across) * kFp8Tile;
    Raw<Bf16, kEach> held[kLoads] = {};
    HR_UNROLL for (int p = 0; p < kLoads; ++p) {
      const int at = p * kFp8Block + thread;
      const int64_t row = row0 + at / (kFp8Tile / kEach), col = col0 + at % (kFp8Tile / kEach) * kEach;
      if (row < a.rows && col < a.cols) held[p] = load_raw<kEach>(a.from + row * a.cols + col);
    }
    HR_UNROLL for (int p = 0; p < kLoads; ++p) {
      const int at = p * kFp8Block + thread, row = at / (kFp8Tile / kEach), col = at % (kFp8Tile / kEach) * kEach;
      const Floats<kEach> x = widen(held[p]);
      HR_UNROLL for (int j = 0; j < kEach; ++j) reinterpret_cast<uint8_t*>(tile + (col + j) * kPitch)[row] =
          static_cast<uint8_t>(fp8_code<F>(x.at[j] * factor));
    }
    __syncthreads();
    const int out = thread / 4, part = thread % 4;
    const int64_t col = col0 + out, row = row0 + part * 16;
    uint32_t words[4];
    HR_UNROLL for (int k = 0; k < 4; ++k) words[k] = tile[out * kPitch + part * 4 + k];
    if (col < a.cols && row < a.rows) store_words<16>(a.codes + col * a.rows + row, words);
    __syncthreads();
  }
}

#ifdef __CUDACC_RTC__
template __global__ void fp8_codes<E4m3>(Fp8Args);
template __global__ void fp8_codes<E5m2>(Fp8Args);
template __global__ void fp8_codes_transposed<E4m3>(Fp8Args);
template __global__ void fp8_codes_transposed<E5m2>(Fp8Args);
#else
void launch_fp8_codes(const Fp8Matrix& m, int multiprocessors, CudaStream stream) {
  const int64_t count = m.rows * m.cols;
  Grid grid = grid_over(count / kFp8Run, multiprocessors, kFp8Block);
  Grid first = grid;
  if (first.x > m.part_count) first.x = m.part_count;
  const Bf16* const from = static_cast<const Bf16*>(m.from);
  launch(fp8_largest, first, stream, from, count, m.parts);
  const Fp8Args args{from, m.rows, m.cols, m.codes, m.scale, m.parts, first.x};
  const bool wide = m.format == Fp8Format::e4m3;
  if (!m.transposed) {
    launch(wide ? fp8_codes<E4m3> : fp8_codes<E5m2>, grid, stream, args);
    return;
  }
  const int64_t tiles = (m.rows + kFp8Tile - 1) / kFp8Tile * ((m.cols + kFp8Tile - 1) / kFp8Tile);
  grid = grid_over(tiles * kFp8Block, multiprocessors, kFp8Block);
  launch(wide ? fp8_codes_transposed<E4m3> : fp8_codes_transposed<E5m2>, grid, stream, args);
}
#endif

}  // namespace headroom::cuda
