// A thread's share of the loss on AMX tiles. Logits are computed transposed, [vocabulary][rows], so that the softmax
// needs no sums across vector lanes. Its numerators are left operands of dw as they are stored, and right operands of
// dx (transposed) after pairs of rows are interleaved. The softmax of a tile is computed between the tile instructions
// of the next tile.
#include "ops/linear_cross_entropy/cpu_tiled_pass.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "base/bfloat16.h"
#include "ops/cast/convert.h"
#include "ops/cpu/amx.h"
#include "ops/cpu/avx512_bf16.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

constexpr float kLog2e = std::numbers::log2e_v<float>;
constexpr float kLargestPower = 60;
constexpr int64_t kPairs = 16;  // pairs of rows in a tile

// The softmax so far of 32 columns (rows of the chunk).
struct Columns {
  __m512 reference[2], largest[2], sum[2];
};

// Where the numerators of a tile are written.
struct Numerators {
  std::byte* rows = nullptr;     // left operands; nullptr: not wanted
  std::byte* columns = nullptr;  // right operands; nullptr: not wanted
};

// Computes the numerators of two rows of a tile of logits, and adds them to the sums.
template <bool kRows, bool kColumns>
HEADROOM_AMX inline void exponentiate(const float* logits, int64_t pair, const Numerators& to, Columns& columns) {
  const __m512 log2e = _mm512_set1_ps(kLog2e), zero = _mm512_setzero_ps();
  __m512 power[2][2];
  for (int row = 0; row < 2; ++row)
    for (int half = 0; half < 2; ++half) {
      const __m512 logit = _mm512_load_ps(logits + (2 * pair + row) * 32 + 16 * half);
      columns.largest[half] = _mm512_max_ps(logit, columns.largest[half]);
      power[row][half] = fast_exp2<Exponential::fine>(_mm512_fmsub_ps(logit, log2e, columns.reference[half]));
      // A logit that is not finite makes the sum NaN.
      columns.sum[half] = _mm512_add_ps(columns.sum[half], _mm512_fmadd_ps(logit, zero, power[row][half]));
    }
  const __m512i even = narrow_row(power[0][0], power[0][1]), odd = narrow_row(power[1][0], power[1][1]);
  if constexpr (kRows) {
    _mm512_store_si512(to.rows + 128 * pair, even);
    _mm512_store_si512(to.rows + 128 * pair + 64, odd);
  }
  if constexpr (kColumns) {
    const PairRow row = interleave_rows(even, odd);
    _mm512_store_si512(to.columns + 64 * pair, row.first);
    _mm512_store_si512(to.columns + amx::kTileBytes + 64 * pair, row.second);
  }
}

// logits[32][32] = 32 rows of w times a strip of x; between(step) is called after each step of 32 along the depth.
template <typename Between>
HEADROOM_AMX inline void multiply_logits(const uint16_t* w, int64_t hidden, const std::byte* x, float* logits,
                                         Between between) {
  amx::load_sums(nullptr, 32);
  for (int64_t step = 0; step < hidden / 32; ++step) {
    amx::multiply_step(reinterpret_cast<const std::byte*>(w + 32 * step), 2 * hidden, x + step * amx::kStepBytes);
    between(step);
  }
  amx::store_sums(logits, 32);
  amx::order_memory();
}

// Whether a strip extends past the end of the vocabulary.
bool has_filling(const TiledPass& pass, int64_t strip) { return pass.cut.tail > 0 && strip == pass.cut.strips - 1; }

// Processes a block of strips for 32 rows of the chunk; `w` is the block in bf16.
template <bool kRows, bool kColumns>
class RowsOfBlock {
 public:
  RowsOfBlock(const TiledPass& pass, const uint16_t* w, int64_t first, int64_t strips, int64_t row_tile)
      : pass_(pass), w_(w), first_(first), strips_(strips), row_tile_(row_tile) {}

  HEADROOM_AMX void run() {
    load();
    const int64_t hidden = pass_.hidden(), steps = pass_.cut.hidden, pairs = (kPairs + steps - 1) / steps;
    const std::byte* const x = pass_.chunk.x + row_tile_ * steps * amx::kStepBytes;
    multiply_logits(w_, hidden, x, logits_of(0), [](int64_t) {});
    for (int64_t strip = 1; strip < strips_; ++strip) {
      start(strip - 1);
      const float* const logits = logits_of(strip - 1);
      const Numerators to = numerators_of(strip - 1);
      Columns columns = columns_;
      multiply_logits(w_ + strip * 32 * hidden, hidden, x, logits_of(strip), [&](int64_t step) HEADROOM_AMX {
        for (int64_t pair = step * pairs; pair < std::min(kPairs, (step + 1) * pairs); ++pair)
          exponentiate<kRows, kColumns>(logits, pair, to, columns);
      });
      columns_ = columns;
      settle(strip - 1);
    }
    if (has_filling(pass_, first_ + strips_ - 1)) lower_filling(logits_of(strips_ - 1));
    start(strips_ - 1);
    exponentiate_tile(strips_ - 1);
    settle(strips_ - 1);
    store();
  }

 private:
  float* logits_of(int64_t strip) const { return pass_.cell.logits + strip % 2 * kLossTile; }
  float* references() const { return pass_.cell.references + row_tile_ * 32; }
  float* largest() const { return pass_.cell.largest + row_tile_ * 32; }
  double* sums() const { return pass_.cell.sums + row_tile_ * 32; }
  Numerators numerators_of(int64_t strip) const {
    Numerators to;
    if constexpr (kRows)
      to.rows = pass_.chunk.numerators + ((first_ + strip) * pass_.cut.rows + row_tile_) * amx::kStepBytes;
    if constexpr (kColumns) to.columns = pass_.cell.columns + strip * amx::kStepBytes;
    return to;
  }

  // Lowers the logits past the end of the vocabulary, so that their numerators become 0.
  void lower_filling(float* logits) const { std::fill(logits + pass_.cut.tail * 32, logits + kLossTile, -1e30f); }

  HEADROOM_AMX void load() {
    for (int half = 0; half < 2; ++half) {
      columns_.reference[half] = _mm512_load_ps(references() + 16 * half);
      columns_.largest[half] = _mm512_load_ps(largest() + 16 * half);
      columns_.sum[half] = _mm512_setzero_ps();
    }
  }

  HEADROOM_AMX void store() const {
    for (int half = 0; half < 2; ++half) {
      _mm512_store_ps(references() + 16 * half, columns_.reference[half]);
      _mm512_store_ps(largest() + 16 * half, columns_.largest[half]);
    }
  }

  HEADROOM_AMX void exponentiate_tile(int64_t strip) {
    const float* const logits = logits_of(strip);
    const Numerators to = numerators_of(strip);
    for (int64_t pair = 0; pair < kPairs; ++pair) exponentiate<kRows, kColumns>(logits, pair, to, columns_);
  }

  // The first tile of the range sets the references.
  HEADROOM_AMX void start(int64_t strip) {
    if (first_ + strip != pass_.first) return;
    for (int half = 0; half < 2; ++half) {
      __m512 largest = _mm512_load_ps(logits_of(strip) + 16 * half);
      for (int64_t row = 1; row < 32; ++row)
        largest = _mm512_max_ps(_mm512_load_ps(logits_of(strip) + row * 32 + 16 * half), largest);
      columns_.largest[half] = largest;
      columns_.reference[half] = _mm512_mul_ps(largest, _mm512_set1_ps(kLog2e));
      for (int64_t quarter = 0; quarter < 2; ++quarter)
        _mm512_store_pd(sums() + 16 * half + 8 * quarter, _mm512_setzero_pd());
    }
  }

  // After a tile's numerators: raises references that are too far below a logit, adds the sums, takes out targets.
  HEADROOM_AMX void settle(int64_t strip) {
    __mmask16 far[2];
    for (int half = 0; half < 2; ++half) {
      const __m512 power = _mm512_fmsub_ps(columns_.largest[half], _mm512_set1_ps(kLog2e), columns_.reference[half]);
      far[half] = _mm512_cmp_ps_mask(power, _mm512_set1_ps(kLargestPower), _CMP_GT_OQ);
    }
    if (far[0] | far[1]) raise(strip, far);
    for (int half = 0; half < 2; ++half) {
      add_doubles(sums() + 16 * half, _mm512_castps512_ps256(columns_.sum[half]));
      add_doubles(sums() + 16 * half + 8, _mm512_extractf32x8_ps(columns_.sum[half], 1));
      columns_.sum[half] = _mm512_setzero_ps();
    }
    const __m512i here = _mm512_set1_epi32(static_cast<int32_t>(first_ + strip));
    const int32_t* const targets = pass_.chunk.targets + row_tile_ * 32;
    uint32_t found = 0;
    for (int half = 0; half < 2; ++half) {
      const __m512i strips = _mm512_srai_epi32(_mm512_load_si512(targets + 16 * half), 5);
      found |= static_cast<uint32_t>(_mm512_cmpeq_epi32_mask(strips, here)) << (16 * half);
    }
    for (; found != 0; found &= found - 1) take_out(strip, std::countr_zero(found));
  }

  HEADROOM_AMX static void add_doubles(double* sums, __m256 more) {
    _mm512_store_pd(sums, _mm512_add_pd(_mm512_load_pd(sums), _mm512_cvtps_pd(more)));
  }

  // Keeps the target's logit and zeroes its numerator: its part of the gradient is added separately, unrounded.
  void take_out(int64_t strip, int64_t column) const {
    const int64_t row = pass_.chunk.targets[row_tile_ * 32 + column] % 32;
    const Numerators to = numerators_of(strip);
    pass_.chunk.chosen[row_tile_ * 32 + column] = logits_of(strip)[row * 32 + column];
    if constexpr (kRows) reinterpret_cast<uint16_t*>(to.rows)[row * 32 + column] = 0;
    if constexpr (kColumns)
      reinterpret_cast<uint16_t*>(to.columns)[column / 16 * 512 + row / 2 * 32 + column % 16 * 2 + row % 2] = 0;
  }

  // Raises the references of the columns in `far` to their largest logits, rescales what was computed so far, and
  // computes this tile's numerators again.
  HEADROOM_AMX void raise(int64_t strip, const __mmask16 (&far)[2]) {
    __m512 factor[2];
    for (int half = 0; half < 2; ++half) {
      const __m512 before = columns_.reference[half];
      columns_.reference[half] = _mm512_mask_mul_ps(before, far[half], columns_.largest[half], _mm512_set1_ps(kLog2e));
      factor[half] = fast_exp2<Exponential::fine>(_mm512_sub_ps(before, columns_.reference[half]));
      columns_.sum[half] = _mm512_setzero_ps();
    }
    for (int half = 0; half < 2; ++half) {
      scale_doubles(sums() + 16 * half, _mm512_castps512_ps256(factor[half]));
      scale_doubles(sums() + 16 * half + 8, _mm512_extractf32x8_ps(factor[half], 1));
    }
    if constexpr (kRows)
      for (int64_t before = pass_.first; before < first_ + strip; ++before)
        scale_rows_of(pass_.chunk.numerators + (before * pass_.cut.rows + row_tile_) * amx::kStepBytes, factor);
    if constexpr (kColumns) {
      for (int64_t before = 0; before < strip; ++before) scale_columns_of(numerators_of(before).columns, factor);
      if (first_ != pass_.first) scale_dx(factor);
    }
    exponentiate_tile(strip);
  }

  HEADROOM_AMX static void scale_doubles(double* sums, __m256 factor) {
    _mm512_store_pd(sums, _mm512_mul_pd(_mm512_load_pd(sums), _mm512_cvtps_pd(factor)));
  }

  HEADROOM_AMX static void scale_rows_of(std::byte* tile, const __m512 (&factor)[2]) {
    for (int64_t row = 0; row < 32; ++row) {
      const __m512i bits = _mm512_load_si512(tile + 64 * row);
      const __m512 left = widen_bf16(_mm512_castsi512_si256(bits)),
                   right = widen_bf16(_mm512_extracti64x4_epi64(bits, 1));
      _mm512_store_si512(tile + 64 * row, narrow_row(_mm512_mul_ps(left, factor[0]), _mm512_mul_ps(right, factor[1])));
    }
  }

  // A dword holds two numerators of one column, the even one in its low half.
  HEADROOM_AMX static void scale_columns_of(std::byte* tiles, const __m512 (&factor)[2]) {
    const __m512i high = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u));
    for (int half = 0; half < 2; ++half)
      for (int64_t pair = 0; pair < kPairs; ++pair) {
        std::byte* const at = tiles + half * amx::kTileBytes + 64 * pair;
        const __m512i bits = _mm512_load_si512(at);
        const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
        const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(bits, high));
        const __m512i scaled = narrow_row(_mm512_mul_ps(even, factor[half]), _mm512_mul_ps(odd, factor[half]));
        const __m512i words = _mm512_permutexvar_epi16(interleaved_halves(), scaled);
        _mm512_store_si512(at, words);
      }
  }

  HEADROOM_AMX void scale_dx(const __m512 (&factor)[2]) const {
    float* const dx = pass_.cell.dx + row_tile_ * pass_.cut.hidden * kLossTile;
    for (int64_t row = 0; row < pass_.hidden(); ++row)
      for (int half = 0; half < 2; ++half) {
        float* const at = dx + row * 32 + 16 * half;
        _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), factor[half]));
      }
  }

  const TiledPass& pass_;
  const uint16_t* w_;
  int64_t first_, strips_, row_tile_;
  Columns columns_;
};

// dx^T += w^T numerators for 32 rows and a block of strips.
void add_to_dx(const TiledPass& pass, int64_t strips, int64_t row_tile, bool first) {
  float* const dx = pass.cell.dx + row_tile * pass.cut.hidden * kLossTile;
  for (int64_t tile = 0; tile < pass.cut.hidden; ++tile) {
    TileCall call;
    call.a = pass.cell.weight + tile * strips * amx::kStepBytes;
    call.b = pass.cell.columns;
    call.depth = strips * 32;
    call.out = dx + tile * kLossTile;
    call.init = first ? nullptr : call.out;
    call.out_stride = 32;
    if (tile + 1 < pass.cut.hidden)
      call.ahead[1] = {reinterpret_cast<const std::byte*>(call.out + kLossTile), 0, 1, 64};
    pass.tiles->multiply(call);
  }
}

// A block of w in bf16, with zeros past the end of the vocabulary.
const uint16_t* block_of_weight(const TiledPass& pass, int64_t first, int64_t strips) {
  const bool fills = has_filling(pass, first + strips - 1);
  const int64_t begin = first * 32 * pass.hidden(), whole = strips * 32 * pass.hidden();
  if (!pass.cut.rounds && !fills) return static_cast<const uint16_t*>(pass.w) + begin;
  const int64_t count = fills ? whole - (32 - pass.cut.tail) * pass.hidden() : whole;
  const DType dtype = pass.cut.rounds ? DType::f32 : DType::bf16;
  convert_floats(static_cast<const std::byte*>(pass.w) + begin * dtype_bytes(dtype), dtype,
                 reinterpret_cast<std::byte*>(pass.cell.rounded), DType::bf16, count);
  std::fill(pass.cell.rounded + count, pass.cell.rounded + whole, uint16_t{0});
  return pass.cell.rounded;
}

template <bool kRows, bool kColumns>
HEADROOM_AMX void run_blocks(const TiledPass& pass) {
  for (int64_t first = pass.first; first < pass.last; first += pass.cut.block) {
    const int64_t strips = std::min(pass.cut.block, pass.last - first);
    const uint16_t* const w = block_of_weight(pass, first, strips);
    if constexpr (kColumns)
      pass.tiles->pack_a({w, DType::bf16, pass.hidden(), true, 0, pass.hidden(), 0, strips * 32, pass.cell.weight,
                          strips * amx::kStepBytes});
    for (int64_t row_tile = 0; row_tile < pass.cut.rows; ++row_tile) {
      RowsOfBlock<kRows, kColumns>(pass, w, first, strips, row_tile).run();
      if constexpr (kColumns) add_to_dx(pass, strips, row_tile, first == pass.first);
    }
  }
}

// 16 elements of w, rounded as in the products.
HEADROOM_AMX inline __m512 weights(const TiledPass& pass, int64_t at) {
  if (!pass.cut.rounds) return widen_words(static_cast<const uint16_t*>(pass.w) + at);
  return widen_bf16((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(static_cast<const float*>(pass.w) + at)));
}

// 16 columns of 16 rows of dx: the sum over the cells, each with its factor.
HEADROOM_AMX inline void gather_dx(const TiledPass* cells, int64_t count, int64_t tile, int64_t row, int64_t from,
                                   __m512i (&r)[16]) {
  for (int64_t i = 0; i < 16; ++i) {
    __m512 sum = _mm512_setzero_ps();
    for (int64_t cell = 0; cell < count; ++cell)
      sum = _mm512_fmadd_ps(_mm512_load_ps(cells[cell].cell.dx + tile * kLossTile + (from + i) * 32 + row % 32),
                            _mm512_load_ps(cells[cell].cell.factors + row), sum);
    r[i] = _mm512_castps_si512(sum);
  }
  transpose16(r);
}

}  // namespace

void run_vocabulary(const TiledPass& pass) {
  if (pass.cut.trains)
    run_blocks<true, true>(pass);
  else if (pass.cut.gradient)
    run_blocks<false, true>(pass);
  else
    run_blocks<false, false>(pass);
}

HEADROOM_AMX void scale_rows(const TiledPass& pass, const uint16_t* x, int64_t rows, int64_t row_tile) {
  const int64_t hidden = pass.hidden();
  for (int64_t i = 0; i < 32; ++i) {
    const int64_t row = row_tile * 32 + i;
    const bool counts = row < rows && pass.chunk.targets[row] >= 0;
    const __m512 factor = _mm512_set1_ps(pass.cell.factors[row]);
    uint16_t* const to = pass.cell.staged + i * hidden;
    for (int64_t col = 0; col < hidden; col += 32) {
      const uint16_t* const from = x + row * hidden + col;
      _mm512_store_si512(to + col, !counts ? _mm512_setzero_si512()
                                           : narrow_row(_mm512_mul_ps(widen_words(from), factor),
                                                        _mm512_mul_ps(widen_words(from + 16), factor)));
    }
  }
  pass.tiles->pack_b({pass.cell.staged, DType::bf16, hidden, true, 0, hidden, 0, 32,
                      pass.cell.scaled + row_tile * amx::kStepBytes, pass.cut.rows * amx::kStepBytes});
}

// If the last strip extends past the end of the vocabulary, its sums are accumulated in separate memory.
void start_last_sums(const TiledPass& pass, const float* sums) {
  const int64_t count = pass.cut.tail * pass.hidden();
  std::copy_n(sums + (pass.cut.strips - 1) * 32 * pass.hidden(), count, pass.cell.last_sums);
  std::fill(pass.cell.last_sums + count, pass.cell.last_sums + 32 * pass.hidden(), 0.0f);
}
void store_last_sums(const TiledPass& pass, float* sums) {
  std::copy_n(pass.cell.last_sums, pass.cut.tail * pass.hidden(), sums + (pass.cut.strips - 1) * 32 * pass.hidden());
}

void multiply_numerators(const TiledPass& pass, bool overwrite, float* sums) {
  constexpr int64_t kStrips = 8, kDepth = 16;  // sums of a group and a block of x stay in the second-level cache
  const int64_t rows = pass.cut.rows, hidden = pass.hidden(), depth = matmul_blocks::even_piece(rows, kDepth);
  const bool fills = has_filling(pass, pass.last - 1);
  if (fills && !overwrite) start_last_sums(pass, sums);
  for (int64_t group = pass.first; group < pass.last; group += kStrips)
    for (int64_t begin = 0; begin < rows; begin += depth)
      for (int64_t strip = group; strip < std::min(pass.last, group + kStrips); ++strip) {
        TileCall call;
        call.a = pass.chunk.numerators + (strip * rows + begin) * amx::kStepBytes;
        call.b = pass.cell.scaled + begin * amx::kStepBytes;
        call.b_bytes = rows * amx::kStepBytes;
        call.depth = std::min(depth, rows - begin) * 32;
        call.out = has_filling(pass, strip) ? pass.cell.last_sums : sums + strip * 32 * hidden;
        call.out_stride = hidden;
        call.out_step = 32;
        call.tiles = pass.cut.hidden;
        call.init = begin == 0 && overwrite ? nullptr : call.out;
        call.ahead[0] = {call.a + rows * amx::kStepBytes, 0, 1, call.depth};
        if (begin == 0) call.ahead[1] = {reinterpret_cast<const std::byte*>(call.out + 32), hidden * 4, 32, 2};
        call.ahead_step = 32 * 4;
        pass.tiles->multiply(call);
      }
  if (fills) store_last_sums(pass, sums);
}

HEADROOM_AMX void store_dx(const TiledPass* cells, int64_t count, int64_t rows, int64_t row_tile, uint16_t* dx) {
  const TiledPass& any = cells[0];
  const int64_t hidden = any.hidden();
  for (int64_t first = row_tile * 32; first < std::min(rows, (row_tile + 1) * 32); first += 16)
    for (int64_t tile = 0; tile < any.cut.hidden; ++tile) {
      __m512i left[16], right[16];
      gather_dx(cells, count, row_tile * any.cut.hidden + tile, first, 0, left);
      gather_dx(cells, count, row_tile * any.cut.hidden + tile, first, 16, right);
      for (int64_t i = 0; i < std::min<int64_t>(16, rows - first); ++i) {
        const int64_t row = first + i, target = any.chunk.targets[row];
        __m512i bits = _mm512_setzero_si512();
        if (target >= 0) {
          const int64_t at = target * hidden + tile * 32;
          const __m512 slope = _mm512_set1_ps(any.chunk.slopes[row]);
          bits = narrow_row(_mm512_fmadd_ps(weights(any, at), slope, _mm512_castsi512_ps(left[i])),
                            _mm512_fmadd_ps(weights(any, at + 16), slope, _mm512_castsi512_ps(right[i])));
        }
        _mm512_storeu_si512(dx + row * hidden + tile * 32, bits);
      }
    }
}

HEADROOM_AMX void add_targets(const TiledPass& pass, const uint16_t* x, int64_t rows, float* sums) {
  const int64_t hidden = pass.hidden();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t target = pass.chunk.targets[row];
    if (target < pass.first * 32 || target >= pass.last * 32) continue;
    const __m512 slope = _mm512_set1_ps(pass.chunk.slopes[row]);
    for (int64_t col = 0; col < hidden; col += 16) {
      float* const at = sums + target * hidden + col;
      _mm512_storeu_ps(at, _mm512_fmadd_ps(widen_words(x + row * hidden + col), slope, _mm512_loadu_ps(at)));
    }
  }
}

}  // namespace headroom

#endif
