// Dot products of bf16 rows by vdpbf16ps: 32 elements a step, of which each lane adds a pair; the lanes are added at
// the end in one tree.
#include "base/bfloat16.h"
#include "base/error.h"
#include "ops/cpu/avx512_bf16.h"
#include "ops/linear/row_products.h"

namespace headroom {

#ifdef HEADROOM_HAS_AVX512
namespace {

constexpr int64_t kStep = 32;
constexpr int64_t kTileRows = 4, kTileOuts = 6;  // whose sums fill three quarters of the registers
constexpr int64_t kRowOuts = 8;                  // of one row alone

HEADROOM_AVX512_BF16 inline __m512 add_halves(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}

HEADROOM_AVX512_BF16 inline __m512 add_quarters(__m512 a, __m512 b) {
  const __m512d left = _mm512_castps_pd(a), right = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(left, right)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(left, right)));
}

// The sums of the lanes of eight vectors, in the same order for each.
HEADROOM_AVX512_BF16 inline void store_sums(const __m512* v, float* sums) {
  const __m512 low = add_quarters(add_halves(v[0], v[1]), add_halves(v[2], v[3]));
  const __m512 high = add_quarters(add_halves(v[4], v[5]), add_halves(v[6], v[7]));
  const __m512 both = _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xdd));
  const __m512 all = _mm512_add_ps(both, _mm512_shuffle_f32x4(both, both, 0xb1));
  _mm256_storeu_ps(sums, _mm512_castps512_ps256(_mm512_shuffle_f32x4(all, all, 0x08)));
}

// What comes next in memory, brought near a few lines a step.
struct Ahead {
  const char* at = nullptr;
  int64_t lines = 0;  // of each step

  HEADROOM_AVX512_BF16 void step() {
    for (int64_t i = 0; i < lines; ++i, at += 64) _mm_prefetch(at, _MM_HINT_T0);
  }
};

// Elements from `i` on of kCount rows of x times those of kOuts rows of w; `kWhole`: 32 of them, else those of the
// mask.
template <int kOuts, int kCount, bool kWhole>
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void add_step(const uint16_t* w, const uint16_t* x,
                                                                         int64_t ins, __mmask32 mask, __m512* total) {
  const auto load = [&](const uint16_t* from) HEADROOM_AVX512_BF16 {
    return as_bf16(kWhole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16(mask, from));
  };
  __m512bh right[kOuts];
#pragma GCC unroll 8
  for (int out = 0; out < kOuts; ++out) right[out] = load(w + out * ins);
#pragma GCC unroll 8
  for (int row = 0; row < kCount; ++row) {
    const __m512bh left = load(x + row * ins);
#pragma GCC unroll 8
    for (int out = 0; out < kOuts; ++out)
      total[row * kOuts + out] = _mm512_dpbf16_ps(total[row * kOuts + out], left, right[out]);
  }
}

// sums[row][out] for kCount rows of x and kOuts rows of w, which lie one behind the other.
template <int kOuts, int kCount>
HEADROOM_AVX512_BF16 void dot(const uint16_t* w, const uint16_t* x, int64_t ins, Ahead ahead, float* sums) {
  constexpr int kSums = (kOuts * kCount + 7) / 8 * 8;
  __m512 total[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) total[i] = _mm512_setzero_ps();
  int64_t i = 0;
  for (; i + kStep <= ins; i += kStep) {
    ahead.step();
    add_step<kOuts, kCount, true>(w + i, x + i, ins, 0, total);
  }
  if (i < ins) add_step<kOuts, kCount, false>(w + i, x + i, ins, first_words(ins - i), total);
#pragma GCC unroll 4
  for (int of = 0; of < kSums; of += 8) store_sums(total + of, sums + of);
}

HEADROOM_AVX512_BF16 inline __m512 load_narrow(__mmask16 mask, const bfloat16* from) {
  return widen_bf16(_mm256_maskz_loadu_epi16(mask, from));
}
HEADROOM_AVX512_BF16 inline __m512 load_narrow(__mmask16 mask, const float* from) {
  return _mm512_maskz_loadu_ps(mask, from);
}
HEADROOM_AVX512_BF16 inline void store_narrow(__mmask16 mask, __m512 value, bfloat16* to) {
  _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(value));
}
HEADROOM_AVX512_BF16 inline void store_narrow(__mmask16 mask, __m512 value, float* to) {
  _mm512_mask_storeu_ps(to, mask, value);
}

// Writes the sums of a tile to y.
template <typename R>
HEADROOM_AVX512_BF16 void finish(const RowProduct& call, int64_t row, int64_t rows, int64_t out, int64_t outs,
                                 const float* sums) {
  const auto mask = static_cast<__mmask16>((1u << outs) - 1);
  const __m512 bias = call.bias ? _mm512_maskz_loadu_ps(mask, call.bias + out) : _mm512_setzero_ps();
  for (int64_t i = 0; i < rows; ++i, sums += outs) {
    const int64_t at = (row + i) * call.outs + out;
    __m512 sum = _mm512_maskz_loadu_ps(mask, sums);
    if (call.bias) sum = _mm512_add_ps(sum, bias);
    if (call.residual) sum = _mm512_add_ps(sum, load_narrow(mask, static_cast<const R*>(call.residual) + at));
    store_narrow(mask, sum, static_cast<R*>(call.y) + at);
  }
}

using TileDot = void (*)(const uint16_t* w, const uint16_t* x, int64_t ins, Ahead ahead, float* sums);

template <typename R>
void dot_columns(const RowProduct& call, int64_t begin, int64_t end) {
  constexpr TileDot kWide[] = {dot<6, 1>, dot<6, 2>, dot<6, 3>, dot<6, 4>};
  constexpr TileDot kNarrow[] = {dot<1, 1>, dot<1, 2>, dot<1, 3>, dot<1, 4>};
  const auto* const x = static_cast<const uint16_t*>(call.x);
  const auto* const w = static_cast<const uint16_t*>(call.w);
  const auto tile = [&](TileDot run, int64_t row, int64_t rows, int64_t out, int64_t outs, Ahead ahead) {
    alignas(64) float sums[kTileRows * kTileOuts];
    run(w + out * call.ins, x + row * call.ins, call.ins, ahead, sums);
    finish<R>(call, row, rows, out, outs, sums);
  };
  const auto tiles = [&](int64_t row, int64_t rows, int64_t out, int64_t outs) {
    if (outs < kTileOuts) {
      for (int64_t i = 0; i < outs; ++i) tile(kNarrow[rows - 1], row, rows, out + i, 1, {});
      return;
    }
    // The tiles of the first rows bring the next columns near.
    const int64_t count = (call.rows + kTileRows - 1) / kTileRows, lines = (kTileOuts + count - 1) / count;
    const int64_t skipped = row / kTileRows * lines * (call.ins / kStep) * 64;
    const int64_t next = kTileOuts * call.ins * 2;
    Ahead ahead;
    if (skipped < next && out + 2 * kTileOuts <= end)
      ahead = {reinterpret_cast<const char*>(w + (out + kTileOuts) * call.ins) + skipped, lines};
    tile(kWide[rows - 1], row, rows, out, outs, ahead);
  };
  if (call.rows == 1) {
    int64_t out = begin;
    for (; out + kRowOuts <= end; out += kRowOuts)
      tile(dot<kRowOuts, 1>, 0, 1, out, kRowOuts,
           {reinterpret_cast<const char*>(w + (out + kRowOuts) * call.ins), kRowOuts});
    begin = out;
  }
  each_dot_tile<kTileRows, kTileOuts>(call.rows, 2 * call.ins, begin, end, tiles);
}

}  // namespace

ColumnRange bf16_dot_range(DType y) { return y == DType::f32 ? dot_columns<float> : dot_columns<bfloat16>; }

#else

ColumnRange bf16_dot_range(DType) { throw InternalError("no products of bf16 on this machine"); }

#endif

}  // namespace headroom
