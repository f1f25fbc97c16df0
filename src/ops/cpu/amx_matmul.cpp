// bf16 products on AMX tiles: a 32 x 32 result in four tiles, with two of A and two of B per 32 steps of the depth. f32
// operands are rounded to bf16 while they are packed, or split into two or three bf16 parts.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/cpu/amx.h"
#include "ops/cpu/amx_split.h"
#include "ops/cpu/amx_walk.h"
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
using amx::SplitBlock;
using amx::Walk;

// How operands are loaded: 32 numbers from memory, those in `mask`, as bf16 words.
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

// For rows of memory that are lanes: loads 16 of them from `lane`, 32 steps from `step`.
template <typename Source>
HEADROOM_AMX inline void load_lanes(const PackCall& call, int64_t lane, int64_t step, __m512i (&r)[16]) {
  const auto* base =
      static_cast<const typename Source::Number*>(call.from) + (call.lane + lane) * call.stride + call.step + step;
  const __mmask32 mask = first_words(call.depth - step);
  for (int64_t i = 0; i < 16; ++i)
    r[i] = lane + i < call.lanes ? Source::load(mask, base + i * call.stride) : _mm512_setzero_si512();
}

// For rows of memory that are steps: loads 16 pairs of them, 32 lanes from `lane`, as dwords that pair two steps of a
// lane. low[p] has lanes 0-3, 8-11, 16-19, 24-27 of pair p, high[p] the others.
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

// Iterates over the pairs of tiles of a call, in the order of memory.
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

constexpr int64_t kPairsAhead = 4;  // prefetched while a pair is packed

// Calls body(lane, step, to) for every pair of tiles; 32 steps of a strip take `step_bytes`.
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

// Packs bf16 as it is and f32 rounded.
HEADROOM_AMX void pack_any_a(const PackCall& call) {
  (call.dtype == DType::f32 ? pack_a<Rounded> : pack_a<Words>)(call);
}

HEADROOM_AMX void pack_any_b(const PackCall& call) {
  (call.dtype == DType::f32 ? pack_b<Rounded> : pack_b<Words>)(call);
}

HEADROOM_AMX inline SplitBlock split_block(const PackCall& call, int64_t lane, int64_t step) {
  const int64_t row = call.depth_major ? call.step + step : call.lane + lane;
  const int64_t column = call.depth_major ? call.lane + lane : call.step + step;
  const __mmask32 mask = first_words(call.depth_major ? call.lanes - lane : call.depth - step);
  return {static_cast<const float*>(call.from) + row * call.stride + column,
          call.stride,
          call.depth_major ? call.depth - step : call.lanes - lane,
          {static_cast<__mmask16>(mask), static_cast<__mmask16>(mask >> 16)}};
}

template <int kParts>
HEADROOM_AMX void pack_split_a(const PackCall& call) {
  each_tile_pair(call, kParts * kStepBytes, [&](int64_t lane, int64_t step, std::byte* to) HEADROOM_AMX {
    const SplitBlock block = split_block(call, lane, step);
    call.depth_major ? amx::split_columns<kParts>(block, to) : amx::split_rows<kParts>(block, to);
  });
}

template <int kParts>
HEADROOM_AMX void pack_split_b(const PackCall& call) {
  each_tile_pair(call, kParts * kStepBytes, [&](int64_t lane, int64_t step, std::byte* to) HEADROOM_AMX {
    const SplitBlock block = split_block(call, lane, step);
    call.depth_major ? amx::split_pairs<kParts>(block, to) : amx::split_column_pairs<kParts>(block, to);
  });
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
  const FinishCall call = given;  // a copy, which stores cannot change
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

// The products of plain bf16 operands.
struct PlainSteps {
  static constexpr int64_t kBytes = kStepBytes;
  HEADROOM_AMX static void multiply(const std::byte* a, int64_t a_stride, const std::byte* b) {
    multiply_step<Keep::a>(a, a_stride, b);
  }
};

template <int kParts>
struct SplitSteps {
  static constexpr int64_t kBytes = kParts * kStepBytes;
  HEADROOM_AMX static void multiply(const std::byte* a, int64_t, const std::byte* b) {
    amx::multiply_split_step<kParts>(a, b);
  }
};

template <typename Steps>
HEADROOM_AMX void multiply_tiles(const TileCall& given) {
  const TileCall call = given;  // a copy, which stores cannot change
  const int64_t steps = call.depth / 32, a_stride = call.a_stride ? call.a_stride : 64;
  const int64_t a_step = call.a_stride ? 64 : Steps::kBytes;
  Walk strip(call.ahead[0], steps * call.tiles), written(call.ahead[1], steps), read(call.ahead[2], steps);
  for (int64_t tile = 0; tile < call.tiles; ++tile) {
    const std::byte* a = call.a;
    const std::byte* b = call.b + tile * call.b_bytes;
    amx::load_sums(call.init ? call.init + tile * call.out_step : nullptr, call.out_stride);
    for (int64_t step = 0; step < steps; ++step, a += a_step, b += Steps::kBytes) {
      Steps::multiply(a, a_stride, b);
      strip.step<0, 2>();
      written.step<1, 3>();
      read.step<0, 3>();
    }
    a = call.p;
    for (int64_t step = 0; step < call.low_rank; step += 32, a += Steps::kBytes, b += Steps::kBytes)
      Steps::multiply(a, 64, b);
    float* const out = call.out + tile * call.out_step;
    amx::store_sums(out, call.out_stride);
    if (call.finish) finish_tile(call.finish->tile(tile, 32, out));
    written.go_on(call.ahead_step);
    read.go_on(call.ahead_step);
  }
}

// 16 rows of c [rows, cols] from `row` = the same columns of the transposed sums [cols, rows] (+ addend).
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

// Computes the transposed product in scratch, then transposes it.
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

template <int kParts>
void take_parts(TileKernel& kernel) {
  kernel.pack_a = pack_split_a<kParts>;
  kernel.pack_b = pack_split_b<kParts>;
  kernel.multiply = multiply_tiles<SplitSteps<kParts>>;
}

}  // namespace

TileOffer offer_amx_tiles(const MatmulSpec& spec, const DeviceFacts& facts) {
  if (!facts.capabilities.has(kAmx)) return {{}, "the machine has no AMX"};
  const TileTraits* traits = amx_tile(spec.operand, spec.multiply);
  if (!traits) return {{}, "operands are neither bf16 nor allowed to become bf16"};
  if (!amx::tiles_permitted()) return {{}, "the kernel does not permit AMX"};
  TileKernel kernel{*traits, pack_any_a, pack_any_b, multiply_tiles<PlainSteps>, amx::enter_tiles, amx::leave_tiles};
  if (spec.operand == DType::f32 && spec.multiply == Multiply::bf16x3) take_parts<2>(kernel);
  if (spec.operand == DType::f32 && spec.multiply == Multiply::full) take_parts<3>(kernel);
  return {kernel, {}};
}

namespace {

// With so few columns, or rows of a weight's gradient, packing three parts of the other operand takes as long as the
// product in fp32. Rows of a layer don't count: a chunk of a sequence has the bits of the whole.
bool too_small_to_split(const MatmulSpec& spec) {
  const int64_t least = spec.a_transposed ? std::min(spec.size.rows, spec.size.cols) : spec.size.cols;
  return spec.operand == DType::f32 && spec.multiply == Multiply::full && least < 32;
}

MatmulOffer make_product(const MatmulSpec& spec, const TileKernel& tiles, const DeviceFacts& facts, int64_t booked) {
  return (runs_thin(spec) ? make_amx_thin_matmul : make_blocked_matmul)(spec, tiles, facts, booked);
}

}  // namespace

MatmulOffer make_amx_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (spec.multiply == Multiply::int8) return {nullptr, "the operands are multiplied as 8-bit codes"};
  if (too_small_to_split(spec)) return {nullptr, "the product is too small to be split into parts"};
  const TileOffer offer = offer_amx_tiles(spec, facts);
  if (!offer.refusal.empty()) return {nullptr, offer.refusal};
  if (!runs_transposed(spec)) return make_product(spec, offer.kernel, facts, booked);
  MatmulOffer product = make_product(transposed_product(spec), offer.kernel, facts, booked - transposed_bytes(spec));
  if (product.matmul) product.matmul = std::make_unique<TransposedMatmul>(std::move(product.matmul), spec);
  return product;
}

}  // namespace headroom

#else

namespace headroom {
TileOffer offer_amx_tiles(const MatmulSpec&, const DeviceFacts&) { return {{}, "the machine has no AMX"}; }
MatmulOffer make_amx_matmul(const MatmulSpec&, const DeviceFacts&, int64_t) {
  return {nullptr, "the machine has no AMX"};
}
}  // namespace headroom

#endif
