// bf16 products on AMX tiles: 32 x 32 results in four tiles, two of A and two of B per 32 steps of the depth. f32
// operands are rounded to bf16 while they are packed, or split into two bf16 parts.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/cpu/amx.h"
#include "ops/cpu/avx512_bf16.h"
#include "ops/cpu/blocked_matmul.h"
#include "ops/cpu/thin_matmul.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

using amx::Keep;
using amx::kStepBytes;
using amx::kTileBytes;
using amx::multiply_step;

// Where operands come from: 32 numbers of memory, those of `mask`, as bf16 words.
struct Words {
  using Number = uint16_t;
  HEADROOM_AMX static __m512i load(__mmask32 mask, const Number* from) { return _mm512_maskz_loadu_epi16(mask, from); }
};

// f32 rounded to bf16.
struct Rounded {
  using Number = float;
  HEADROOM_AMX static __m512i load(__mmask32 mask, const Number* from) {
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
    const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + 16);
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
  }
};

// What rounding leaves of f32, as bf16; nothing of what is not finite.
struct Rest {
  using Number = float;
  HEADROOM_AMX static __m512 left(__m512 number) {
    const __m512 rest = _mm512_sub_ps(number, widen_bf16((__m256i)_mm512_cvtneps_pbh(number)));
    const __mmask16 finite = _mm512_cmp_ps_mask(rest, rest, _CMP_EQ_OQ);
    return _mm512_maskz_mov_ps(finite, rest);
  }
  HEADROOM_AMX static __m512i load(__mmask32 mask, const Number* from) {
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
    const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + 16);
    return (__m512i)_mm512_cvtne2ps_pbh(left(high), left(low));
  }
};

// The rows of memory are lanes: 16 of them from `lane`, 32 steps from `step`.
template <typename Source>
HEADROOM_AMX inline void load_lanes(const PackCall& call, int64_t lane, int64_t step, __m512i (&r)[16]) {
  const auto* base =
      static_cast<const typename Source::Number*>(call.from) + (call.lane + lane) * call.stride + call.step + step;
  const __mmask32 mask = first_words(call.depth - step);
  for (int64_t i = 0; i < 16; ++i)
    r[i] = lane + i < call.lanes ? Source::load(mask, base + i * call.stride) : _mm512_setzero_si512();
}

// The rows of memory are steps: 16 pairs of them, 32 lanes from `lane`, as dwords that pair two steps of a lane. low[p]
// has lanes 0-3, 8-11, 16-19, 24-27 of pair p, high[p] the others.
template <typename Source>
HEADROOM_AMX inline void load_pairs(const PackCall& call, int64_t lane, int64_t step, __m512i (&low)[16],
                                    __m512i (&high)[16]) {
  const auto* base =
      static_cast<const typename Source::Number*>(call.from) + (call.step + step) * call.stride + call.lane + lane;
  const __mmask32 mask = first_words(call.lanes - lane);
  for (int64_t p = 0; p < 16; ++p) {
    const int64_t left = call.depth - step - 2 * p;
    const __m512i even = left > 0 ? Source::load(mask, base + 2 * p * call.stride) : _mm512_setzero_si512();
    const __m512i odd = left > 1 ? Source::load(mask, base + (2 * p + 1) * call.stride) : _mm512_setzero_si512();
    low[p] = _mm512_unpacklo_epi16(even, odd);
    high[p] = _mm512_unpackhi_epi16(even, odd);
  }
}

HEADROOM_AMX inline void store_tile(const __m512i (&r)[16], std::byte* to) {
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + 64 * i, r[i]);
}

// The way through the pairs of tiles of a call, in the order of memory.
struct TilePair {
  int64_t lane = 0;
  int64_t step = 0;

  bool within(const PackCall& call) const { return lane < call.lanes && step < call.depth; }

  void next(const PackCall& call) {
    int64_t& inner = call.depth_major ? lane : step;
    int64_t& outer = call.depth_major ? step : lane;
    inner += 32;
    if (inner < (call.depth_major ? call.lanes : call.depth)) return;
    inner = 0;
    outer += 32;
  }

  void prefetch(const PackCall& call) const {
    if (!within(call)) return;
    const int64_t bytes = dtype_bytes(call.dtype);
    const int64_t row = call.depth_major ? call.step + step : call.lane + lane;
    const int64_t column = call.depth_major ? call.lane + lane : call.step + step;
    const int64_t rows = std::min<int64_t>(32, call.depth_major ? call.depth - step : call.lanes - lane);
    const auto* at = static_cast<const std::byte*>(call.from) + (row * call.stride + column) * bytes;
    for (int64_t i = 0; i < rows; ++i, at += call.stride * bytes)
      for (int64_t byte = 0; byte < 32 * bytes; byte += 64) __builtin_prefetch(at + byte, 0, 3);
  }
};

constexpr int64_t kPairsAhead = 4;  // brought near while a pair is packed

// body(lane, step, to) for every pair of tiles; 32 steps of a strip take `step_bytes`.
template <typename Body>
HEADROOM_AMX inline void each_tile_pair(const PackCall& call, int64_t step_bytes, Body body) {
  TilePair pair, ahead;
  for (int64_t i = 0; i < kPairsAhead; ++i, ahead.next(call)) ahead.prefetch(call);
  for (; pair.within(call); pair.next(call), ahead.next(call)) {
    ahead.prefetch(call);
    body(pair.lane, pair.step, call.to + pair.lane / 32 * call.strip_bytes + pair.step / 32 * step_bytes);
  }
}

// Two tiles of A: 32 rows of 32 consecutive steps.
template <typename Source>
HEADROOM_AMX inline void pack_rows(const PackCall& call, int64_t lane, int64_t step, std::byte* to) {
  __m512i low[16], high[16];
  if (call.depth_major) {
    load_pairs<Source>(call, lane, step, low, high);
    transpose16(low);
    transpose16(high);
    for (int i = 0; i < 16; ++i) {
      const int row = i / 4 * 8 + i % 4;
      _mm512_store_si512(to + 64 * row, low[i]);
      _mm512_store_si512(to + 64 * (row + 4), high[i]);
    }
  } else {
    load_lanes<Source>(call, lane, step, low);
    store_tile(low, to);
    load_lanes<Source>(call, lane + 16, step, high);
    store_tile(high, to + kTileBytes);
  }
}

// Two tiles of B: 16 rows, each a pair of steps for 16 columns.
template <typename Source>
HEADROOM_AMX inline void pack_columns(const PackCall& call, int64_t lane, int64_t step, std::byte* to) {
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  __m512i low[16], high[16];
  if (call.depth_major) {
    load_pairs<Source>(call, lane, step, low, high);
    for (int p = 0; p < 16; ++p) {
      _mm512_store_si512(to + 64 * p, _mm512_permutex2var_epi64(low[p], first, high[p]));
      _mm512_store_si512(to + kTileBytes + 64 * p, _mm512_permutex2var_epi64(low[p], second, high[p]));
    }
  } else {
    load_lanes<Source>(call, lane, step, low);
    transpose16(low);
    store_tile(low, to);
    load_lanes<Source>(call, lane + 16, step, high);
    transpose16(high);
    store_tile(high, to + kTileBytes);
  }
}

template <typename Source>
HEADROOM_AMX void pack_a(const PackCall& call) {
  each_tile_pair(call, kStepBytes, [&](int64_t lane, int64_t step, std::byte* to) HEADROOM_AMX {
    pack_rows<Source>(call, lane, step, to);
  });
}

template <typename Source>
HEADROOM_AMX void pack_b(const PackCall& call) {
  each_tile_pair(call, kStepBytes, [&](int64_t lane, int64_t step, std::byte* to) HEADROOM_AMX {
    pack_columns<Source>(call, lane, step, to);
  });
}

// bf16 as it is, f32 rounded.
HEADROOM_AMX void pack_any_a(const PackCall& call) {
  (call.dtype == DType::f32 ? pack_a<Rounded> : pack_a<Words>)(call);
}

HEADROOM_AMX void pack_any_b(const PackCall& call) {
  (call.dtype == DType::f32 ? pack_b<Rounded> : pack_b<Words>)(call);
}

// Both parts of f32, the rounded one first.
HEADROOM_AMX void pack_split_a(const PackCall& call) {
  each_tile_pair(call, 2 * kStepBytes, [&](int64_t lane, int64_t step, std::byte* to) HEADROOM_AMX {
    pack_rows<Rounded>(call, lane, step, to);
    pack_rows<Rest>(call, lane, step, to + kStepBytes);
  });
}

HEADROOM_AMX void pack_split_b(const PackCall& call) {
  each_tile_pair(call, 2 * kStepBytes, [&](int64_t lane, int64_t step, std::byte* to) HEADROOM_AMX {
    pack_columns<Rounded>(call, lane, step, to);
    pack_columns<Rest>(call, lane, step, to + kStepBytes);
  });
}

HEADROOM_AMX inline void load_sums(const TileCall& call) {
  if (call.init) {
    const int64_t stride = call.init_stride * 4;
    _tile_loadd(0, call.init, stride);
    _tile_loadd(1, call.init + 16, stride);
    _tile_loadd(2, call.init + 16 * call.init_stride, stride);
    _tile_loadd(3, call.init + 16 * call.init_stride + 16, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
}

HEADROOM_AMX inline void store_sums(const TileCall& call) {
  const int64_t stride = call.out_stride * 4;
  _tile_stored(0, call.out, stride);
  _tile_stored(1, call.out + 16, stride);
  _tile_stored(2, call.out + 16 * call.out_stride, stride);
  _tile_stored(3, call.out + 16 * call.out_stride + 16, stride);
}

// Walks the lines of a call's regions, a few at each step of the depth.
class Ahead {
 public:
  explicit Ahead(const TileCall& call) : regions_(call.ahead) {
    int64_t lines = 0;
    for (const NearLines& region : call.ahead) lines += region.count();
    const int64_t steps = call.depth / 32;
    per_step_ = (lines + steps - 1) / steps;
    enter();
  }

  HEADROOM_AMX void step() {
    for (int64_t i = 0; i < per_step_ && at_; ++i) {
      const std::byte* const line = at_ + 64 * line_;
      if (region_ == 0)
        __builtin_prefetch(line, 0, 2);
      else if (region_ == 1)
        __builtin_prefetch(line, 1, 3);
      else
        __builtin_prefetch(line, 0, 3);
      if (++line_ < regions_[region_].lines) continue;
      line_ = 0;
      at_ += regions_[region_].stride;
      if (++row_ < regions_[region_].rows) continue;
      row_ = 0;
      ++region_;
      enter();
    }
  }

 private:
  void enter() {
    while (region_ < 3 && regions_[region_].count() == 0) ++region_;
    at_ = region_ < 3 ? regions_[region_].at : nullptr;
  }

  const NearLines* regions_;
  int64_t per_step_ = 0, region_ = 0, row_ = 0, line_ = 0;
  const std::byte* at_ = nullptr;
};

HEADROOM_AMX void multiply_tile(const TileCall& call) {
  load_sums(call);
  Ahead ahead(call);
  const int64_t a_stride = call.a_stride ? call.a_stride : 64;
  const int64_t a_step = call.a_stride ? 64 : kStepBytes;
  const std::byte* a = call.a;
  const std::byte* b = call.b;
  for (int64_t step = 0; step < call.depth; step += 32) {
    multiply_step<Keep::a>(a, a_stride, b);
    ahead.step();
    a += a_step;
    b += kStepBytes;
  }
  for (int64_t step = 0; step < call.low_rank; step += 32)
    multiply_step<Keep::a>(call.p + step / 32 * kStepBytes, 64, b + step / 32 * kStepBytes);
  store_sums(call);
}

// Tiles 4 and 5 hold a part of A, 6 and 7 a part of B.
HEADROOM_AMX inline void multiply_parts() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// 32 steps: rest(A) round(B) + round(A) round(B) + round(A) rest(B).
HEADROOM_AMX inline void multiply_split_step(const std::byte* a, const std::byte* b) {
  _tile_stream_loadd(6, b, 64);
  _tile_stream_loadd(7, b + kTileBytes, 64);
  _tile_loadd(4, a + kStepBytes, 64);
  _tile_loadd(5, a + kStepBytes + kTileBytes, 64);
  multiply_parts();
  _tile_loadd(4, a, 64);
  _tile_loadd(5, a + kTileBytes, 64);
  multiply_parts();
  _tile_stream_loadd(6, b + kStepBytes, 64);
  _tile_stream_loadd(7, b + kStepBytes + kTileBytes, 64);
  multiply_parts();
}

HEADROOM_AMX void multiply_split_tile(const TileCall& call) {
  load_sums(call);
  Ahead ahead(call);
  const std::byte* a = call.a;
  const std::byte* b = call.b;
  for (int64_t step = 0; step < call.depth; step += 32, a += 2 * kStepBytes, b += 2 * kStepBytes) {
    multiply_split_step(a, b);
    ahead.step();
  }
  const std::byte* p = call.p;
  for (int64_t step = 0; step < call.low_rank; step += 32, p += 2 * kStepBytes, b += 2 * kStepBytes)
    multiply_split_step(p, b);
  store_sums(call);
}

// 16 sums of a row, with bias and addend.
HEADROOM_AMX inline __m512 finished(const FinishCall& call, int64_t row, int64_t col, __mmask16 mask) {
  __m512 sum = _mm512_maskz_loadu_ps(mask, call.sum + row * call.sum_stride + col);
  if (call.bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, call.bias + col));
  if (!call.addend) return sum;
  const int64_t at = row * call.c_stride + col;
  if (call.dtype == DType::f32)
    return _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, static_cast<const float*>(call.addend) + at));
  return _mm512_add_ps(sum, widen_bf16(_mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(call.addend) + at)));
}

HEADROOM_AMX void finish_tile(const FinishCall& given) {
  const FinishCall call = given;  // which no store changes
  const __mmask32 mask = first_words(call.cols);
  const __mmask16 low = static_cast<__mmask16>(mask), high = static_cast<__mmask16>(mask >> 16);
  for (int64_t row = 0; row < call.rows; ++row) {
    const __m512 left = finished(call, row, 0, low), right = finished(call, row, 16, high);
    const int64_t at = row * call.c_stride;
    if (call.dtype == DType::f32) {
      _mm512_mask_storeu_ps(static_cast<float*>(call.c) + at, low, left);
      _mm512_mask_storeu_ps(static_cast<float*>(call.c) + at + 16, high, right);
    } else {
      _mm512_mask_storeu_epi16(static_cast<uint16_t*>(call.c) + at, mask, (__m512i)_mm512_cvtne2ps_pbh(right, left));
    }
  }
}

// 16 rows of c [rows, cols] (+ addend) = the columns `row` and on of the transposed sums [cols, rows].
HEADROOM_AMX void transpose_rows(const float* sums, const MatmulSize& size, int64_t row, const float* addend,
                                 float* c) {
  const int64_t rows = std::min<int64_t>(16, size.rows - row);
  const __mmask16 valid_rows = static_cast<__mmask16>(first_words(rows));
  for (int64_t col = 0; col < size.cols; col += 16) {
    const int64_t cols = std::min<int64_t>(16, size.cols - col);
    const __mmask16 valid_cols = static_cast<__mmask16>(first_words(cols));
    __m512i r[16];
    for (int64_t i = 0; i < 16; ++i)
      r[i] =
          i < cols ? _mm512_maskz_loadu_epi32(valid_rows, sums + (col + i) * size.rows + row) : _mm512_setzero_si512();
    transpose16(r);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = (row + i) * size.cols + col;
      __m512 sum = _mm512_castsi512_ps(r[i]);
      if (addend) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(valid_cols, addend + at));
      _mm512_mask_storeu_ps(c + at, valid_cols, sum);
    }
  }
}

// Runs the transposed product into scratch, then turns it round.
class TransposedMatmul final : public Matmul {
 public:
  TransposedMatmul(std::unique_ptr<Matmul> product, const MatmulSpec& spec)
      : product_(std::move(product)), spec_(spec) {}
  int64_t scratch_bytes() const override { return transposed_bytes(spec_) + product_->scratch_bytes(); }
  void run(const MatmulArguments& arguments) const override {
    float* const sums = reinterpret_cast<float*>(arguments.scratch);
    product_->run({arguments.b, arguments.a, sums, nullptr, nullptr, arguments.scratch + transposed_bytes(spec_)});
    const float* addend = spec_.addend ? static_cast<const float*>(arguments.addend) : nullptr;
    parallel_for(spec_.size.rows, 256, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; row += 16)
        transpose_rows(sums, spec_.size, row, addend, static_cast<float*>(arguments.c));
    });
  }

 private:
  std::unique_ptr<Matmul> product_;
  MatmulSpec spec_;
};

}  // namespace

TileOffer offer_amx_tiles(const MatmulSpec& spec, const DeviceFacts& facts) {
  if (facts.isa < 514) return {{}, "the machine has no AMX"};
  const TileTraits* traits = amx_tile(spec.operand, spec.multiply);
  if (!traits) return {{}, "operands are neither bf16 nor allowed to become bf16"};
  if (!amx::tiles_permitted()) return {{}, "the kernel does not permit AMX"};
  TileKernel kernel{*traits, pack_any_a, pack_any_b, multiply_tile, finish_tile, amx::enter_tiles, amx::leave_tiles};
  if (spec.operand == DType::f32 && spec.multiply == Multiply::bf16x3) {
    kernel.pack_a = pack_split_a;
    kernel.pack_b = pack_split_b;
    kernel.tile = multiply_split_tile;
  }
  return {kernel, {}};
}

}  // namespace headroom

#else

namespace headroom {
TileOffer offer_amx_tiles(const MatmulSpec&, const DeviceFacts&) { return {{}, "the machine has no AMX"}; }
}  // namespace headroom

#endif

namespace headroom {

namespace {

MatmulOffer make_product(const MatmulSpec& spec, const TileKernel& tiles, const DeviceFacts& facts, int64_t booked) {
  return (runs_thin(spec) ? make_amx_thin_matmul : make_blocked_matmul)(spec, tiles, facts, booked);
}

}  // namespace

MatmulOffer make_amx_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  const TileOffer offer = offer_amx_tiles(spec, facts);
  if (!offer.refusal.empty()) return {nullptr, offer.refusal};
  if (!runs_transposed(spec)) return make_product(spec, offer.kernel, facts, booked);
  MatmulOffer product = make_product(transposed_product(spec), offer.kernel, facts, booked - transposed_bytes(spec));
  if (product.matmul) product.matmul = std::make_unique<TransposedMatmul>(std::move(product.matmul), spec);
  return product;
}

}  // namespace headroom
