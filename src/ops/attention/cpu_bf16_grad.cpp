// Gradient of attention with bf16 products. Scores and their gradient are [queries][keys]: rows of bf16 are the left
// operand of dq, interleaved pairs of rows the right operands of dk and dv, which are summed transposed.
#include <numbers>

#include "ops/attention/bf16_vector.h"
#include "ops/attention/grad_bf16.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {
namespace {

constexpr int64_t kGradColumns = kGradStripsBf16 * kStrip;
// A tile of keys is staged, and its sums are transposed, in buffers the size of a query tile.
static_assert(kGradKeysBf16 <= kGradColumns);

// rowsum(do * o) of one row; `grad_o` is padded with zeros after `dim`.
HEADROOM_AVX512_BF16 float row_product(const uint16_t* grad_o, const uint16_t* o, int64_t dim) {
  __m512 even = _mm512_setzero_ps(), odd = even;
  const __m512i high = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u));
  for (int64_t i = 0; i < dim; i += 32) {
    const __mmask32 mask = first_words(dim - i);
    const __m512i x = _mm512_loadu_si512(grad_o + i), y = _mm512_maskz_loadu_epi16(mask, o + i);
    even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)), _mm512_castsi512_ps(_mm512_slli_epi32(y, 16)),
                           even);
    odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, high)),
                          _mm512_castsi512_ps(_mm512_and_si512(y, high)), odd);
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
}

// Transposes the staged rows of a query tile, strip by strip.
HEADROOM_AVX512_BF16 void transpose_strips(const uint16_t* rows, int64_t width, uint16_t* to) {
  for (int64_t strip = 0; strip < kGradColumns * width; strip += kStrip * width)
    transpose_bf16(rows + strip, width, kStrip, width, to + strip, kStrip);
}

// What the vector code reads and writes for one strip and 32 keys.
struct StripScores {
  const float* scores;  // [kStrip][32]
  const float* dp;      // likewise
  const float* lse;     // of the strip's queries
  const float* rowsum;
  uint16_t* ds;         // [kStrip][32]
  uint16_t* p_pairs;    // [kStrip / 2][32] pairs
  uint16_t* ds_pairs;   // likewise
  const uint32_t* low;  // halves of the queries' row keys, used if scores are dropped
  const uint32_t* high;
  const DropoutRate& rate;
};

// How the product of a query and a key becomes a score in the base-2 domain: scale s, or cap tanh(inner s).
struct ScoreRule {
  __m512 scale;
  __m512 cap;  // in the base-2 domain
  __m512 inner;
};

// p = exp(score - lse) and ds = p (dp - rowsum), times the slope of the cap, for one query and 32 keys, as bf16. With
// dropout, dropped entries of dp are 0 and the kept ones are scaled; p is dropped only after ds has used it.
struct GradRow {
  __m512i p;
  __m512i ds;
};
template <bool kCapped, bool kMasked, bool kDropped>
HEADROOM_AVX512_BF16 inline GradRow grad_row(const StripScores& strip, const StripStep& step, int32_t query,
                                             int32_t key, const ScoreRule& rule) {
  const KeySpan seen = keys_seen(step, query);
  __mmask32 kept = ~__mmask32{0};
  if constexpr (kDropped) kept = kept_words(strip.low[query], strip.high[query], step.tile + key, strip.rate.below);
  const __m512 lse = _mm512_set1_ps(strip.lse[query]), rowsum = _mm512_set1_ps(strip.rowsum[query]);
  __m512 p[2], ds[2];
  for (int half = 0; half < 2; ++half) {
    const int64_t at = query * 32 + 16 * half;
    __m512 s = _mm512_loadu_ps(strip.scores + at);
    if constexpr (kCapped) s = fast_tanh(_mm512_mul_ps(s, rule.inner));
    p[half] = exp2_for_bf16(_mm512_fmsub_ps(s, kCapped ? rule.cap : rule.scale, lse));
    if constexpr (kMasked) p[half] = _mm512_maskz_mov_ps(seen.mask16(key + 16 * half), p[half]);
    __m512 dp = _mm512_loadu_ps(strip.dp + at);
    if constexpr (kDropped)
      dp = _mm512_maskz_mul_ps(static_cast<__mmask16>(kept >> 16 * half), dp, _mm512_set1_ps(strip.rate.scale));
    ds[half] = _mm512_mul_ps(p[half], _mm512_sub_ps(dp, rowsum));
    if constexpr (kCapped) ds[half] = _mm512_mul_ps(ds[half], _mm512_fnmadd_ps(s, s, _mm512_set1_ps(1.0f)));
  }
  __m512i weights = narrow_row(p[0], p[1]);
  if constexpr (kDropped) weights = _mm512_maskz_mov_epi16(kept, weights);
  return {weights, narrow_row(ds[0], ds[1])};
}

HEADROOM_AVX512_BF16 inline void store_pairs(uint16_t* to, __m512i even, __m512i odd) {
  _mm512_storeu_si512(to, _mm512_unpacklo_epi16(even, odd));
  _mm512_storeu_si512(to + 32, _mm512_unpackhi_epi16(even, odd));
}

// The 32 keys of the tile from `key`.
template <bool kCapped, bool kMasked, bool kDropped>
HEADROOM_AVX512_BF16 void grad_rows(const StripScores& strip, const StripStep& step, int32_t key, const ScoreRule& rule,
                                    std::span<RowsAhead> ahead) {
  for (int32_t query = 0; query < kStrip; query += 2) {
    for (RowsAhead& rows : ahead) rows.bring_row();
    const GradRow even = grad_row<kCapped, kMasked, kDropped>(strip, step, query, key, rule);
    const GradRow odd = grad_row<kCapped, kMasked, kDropped>(strip, step, query + 1, key, rule);
    _mm512_storeu_si512(strip.ds + query * 32, even.ds);
    _mm512_storeu_si512(strip.ds + query * 32 + 32, odd.ds);
    store_pairs(strip.p_pairs + query * 32, even.p, odd.p);
    store_pairs(strip.ds_pairs + query * 32, even.ds, odd.ds);
  }
}

template <bool kDropped>
HEADROOM_AVX512_BF16 void grad_scores(const StripScores& strip, const StripStep& step, int32_t key, double scale,
                                      double softcap, std::span<RowsAhead> ahead) {
  const ScoreRule rule{_mm512_set1_ps(static_cast<float>(scale * std::numbers::log2e)),
                       _mm512_set1_ps(static_cast<float>(softcap * std::numbers::log2e)),
                       _mm512_set1_ps(softcap > 0 ? static_cast<float>(scale / softcap) : 0.0f)};
  const bool masked = step.hides(key, key + 32);
  if (softcap > 0)
    return masked ? grad_rows<true, true, kDropped>(strip, step, key, rule, ahead)
                  : grad_rows<true, false, kDropped>(strip, step, key, rule, ahead);
  masked ? grad_rows<false, true, kDropped>(strip, step, key, rule, ahead)
         : grad_rows<false, false, kDropped>(strip, step, key, rule, ahead);
}

// Tiles [width][kGradKeysBf16] with keys in the order of pair_column become [kGradKeysBf16][width].
HEADROOM_AVX512_BF16 void turn_sums(float* sums, int64_t keys, int64_t width, float* staging) {
  for (float* tile = sums; tile < sums + keys * width; tile += kGradKeysBf16 * width) {
    transpose_words32(tile, kGradKeysBf16, width, kGradKeysBf16, staging, width);
    for (int64_t key = 0; key < kGradKeysBf16; ++key)
      std::copy_n(staging + key * width, width, tile + (key / 32 * 32 + pair_column(key % 32)) * width);
  }
}

}  // namespace

template <typename Products>
Bf16Grad<Products>::Bf16Grad(const GradCall& call, std::byte* block)
    : shape_(call.shape), width_(padded_dim(call.shape.dim)), dropout_(call.dropout), row_keys_{} {
  Carver carver(block);
  block_ = grad_bf16_block(carver, call.shape);
  Products::enter();
}

template <typename Products>
void Bf16Grad<Products>::begin(const void* k, const void* v) {
  const int64_t stride = shape_.kv_heads * shape_.dim, rows = grad_sum_rows(shape_);
  std::fill_n(block_.dk, rows * width_, 0.0f);
  std::fill_n(block_.dv, rows * width_, 0.0f);
  uint16_t* staged = block_.q;
  for (int64_t tile = 0; tile < shape_.keys; tile += kGradKeysBf16) {
    const int64_t count = std::min(kGradKeysBf16, shape_.keys - tile), at = tile * width_;
    stage_rows(static_cast<const uint16_t*>(k) + tile * stride, stride, count, kGradKeysBf16, shape_.dim, staged,
               width_);
    pack_transposed(staged, width_, kGradKeysBf16, block_.k_t + at);
    pack_rows(staged, width_, kGradKeysBf16, block_.k + at, 32 * kGradKeysBf16);
    stage_rows(static_cast<const uint16_t*>(v) + tile * stride, stride, count, kGradKeysBf16, shape_.dim, staged,
               width_);
    pack_transposed(staged, width_, kGradKeysBf16, block_.v_t + at);
  }
}

template <typename Products>
void Bf16Grad<Products>::load_queries(const QueryTile& tile) {
  if (dropout_.drops()) row_keys_.fill(dropout_, tile.scores);
  const int64_t stride = shape_.heads * shape_.dim;
  stage_rows(tile.q, stride, tile.rows, kColumns, shape_.dim, block_.q, width_);
  stage_rows(tile.grad_o, stride, tile.rows, kColumns, shape_.dim, block_.grad_o, width_);
  for (int64_t i = 0; i < kColumns; ++i) {
    const bool real = i < tile.rows;
    const uint16_t* o = static_cast<const uint16_t*>(tile.o) + i * stride;
    block_.rowsum[i] = real ? row_product(block_.grad_o + i * width_, o, shape_.dim) : 0.0f;
    block_.lse[i] = real ? tile.lse[i] * std::numbers::log2e_v<float> : 0.0f;
  }
  transpose_strips(block_.q, width_, block_.q_t);
  transpose_strips(block_.grad_o, width_, block_.grad_o_t);
  std::fill_n(block_.dq, width_ * kColumns, 0.0f);
}

template <typename Products>
void Bf16Grad<Products>::announce(const QueryTile& next) {
  const int64_t bytes = shape_.dim * 2, stride = shape_.heads * bytes;
  ahead_ = {RowsAhead(next.q, stride, next.rows, bytes), RowsAhead(next.o, stride, next.rows, bytes),
            RowsAhead(next.grad_o, stride, next.rows, bytes), RowsAhead(next.dq, stride, next.rows, bytes)};
}

template <typename Products>
typename Bf16Grad<Products>::Range Bf16Grad<Products>::range_of(std::span<const StripStep> steps) {
  Range range;
  for (size_t strip = 0; strip < steps.size(); ++strip) {
    if (steps[strip].begin >= steps[strip].end) continue;
    range.begin = std::min<int64_t>(range.begin, steps[strip].begin);
    range.end = std::max<int64_t>(range.end, align_up(steps[strip].end, 32));
    range.first = std::min(range.first, static_cast<int64_t>(strip));
    range.last = static_cast<int64_t>(strip) + 1;
  }
  return range;
}

template <typename Products>
void Bf16Grad<Products>::differentiate(int64_t tile, int64_t strip, int64_t key, const StripStep& step) {
  const int64_t keys = (tile + key) * width_, queries = strip * kStrip * width_;
  const int64_t pairs = key * kColumns + strip * kStrip * 32;
  const StripScores scores{block_.scores,
                           block_.dp,
                           block_.lse + strip * kStrip,
                           block_.rowsum + strip * kStrip,
                           block_.ds + (strip * kGradKeysBf16 + key) * kStrip,
                           block_.p_pairs + pairs,
                           block_.ds_pairs + pairs,
                           row_keys_.low.data() + strip * kStrip,
                           row_keys_.high.data() + strip * kStrip,
                           dropout_.rate};
  if (key < step.begin || key >= step.end) {
    std::fill_n(scores.p_pairs, kStrip * 32, uint16_t{0});
    std::fill_n(scores.ds_pairs, kStrip * 32, uint16_t{0});
    return;
  }
  Products::multiply(
      {block_.q + queries, width_, 32, block_.k_t + keys, 32 * width_, block_.scores, 32, kStrip, 32, width_, false});
  Products::multiply(
      {block_.grad_o + queries, width_, 32, block_.v_t + keys, 32 * width_, block_.dp, 32, kStrip, 32, width_, false});
  dropout_.drops() ? grad_scores<true>(scores, step, static_cast<int32_t>(key), shape_.scale, shape_.softcap, ahead_)
                   : grad_scores<false>(scores, step, static_cast<int32_t>(key), shape_.scale, shape_.softcap, ahead_);
}

template <typename Products>
void Bf16Grad<Products>::add_to_dq(int64_t tile, int64_t strip, const StripStep& step) {
  const int64_t begin = step.begin, keys = align_up(step.end, 32) - begin;
  if (keys <= 0) return;
  Products::multiply({block_.ds + (strip * kGradKeysBf16 + begin) * kStrip, 32, 32 * kStrip,
                      block_.k + tile * width_ + begin * 32, 32 * kGradKeysBf16, block_.dq + strip * kStrip * width_,
                      width_, kStrip, width_, keys, true});
}

template <typename Products>
void Bf16Grad<Products>::step(int64_t tile, int64_t, std::span<const StripStep> steps) {
  const Range range = range_of(steps);
  if (range.begin >= range.end) return;
  const auto step_of = [&](int64_t strip) -> const StripStep& { return steps[static_cast<size_t>(strip)]; };
  for (int64_t strip = range.first; strip < range.last; ++strip)
    for (int64_t key = range.begin; key < range.end; key += 32) differentiate(tile, strip, key, step_of(strip));
  for (int64_t strip = range.first; strip < range.last; ++strip) add_to_dq(tile, strip, step_of(strip));
  add_to_keys(tile, range);
}

template <typename Products>
void Bf16Grad<Products>::add_to_keys(int64_t tile, const Range& range) {
  const int64_t queries = range.first * kStrip, depth = range.last * kStrip - queries;
  const int64_t keys = range.end - range.begin, to = tile * width_ + range.begin;
  const int64_t pairs = range.begin * kGradColumns + queries * 32;
  Products::multiply({block_.grad_o_t + queries * width_, kStrip, kStrip * width_, block_.p_pairs + pairs,
                      32 * kGradColumns, block_.dv + to, kGradKeysBf16, width_, keys, depth, true});
  Products::multiply({block_.q_t + queries * width_, kStrip, kStrip * width_, block_.ds_pairs + pairs,
                      32 * kGradColumns, block_.dk + to, kGradKeysBf16, width_, keys, depth, true});
}

template <typename Products>
void Bf16Grad<Products>::store_queries(void* dq, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    store_row(block_.dq + i * width_, static_cast<float>(shape_.scale), shape_.dim,
              static_cast<uint16_t*>(dq) + i * shape_.heads * shape_.dim);
}

template <typename Products>
void Bf16Grad<Products>::end() {
  const int64_t keys = grad_sum_rows(shape_);
  turn_sums(block_.dk, keys, width_, block_.dq);
  turn_sums(block_.dv, keys, width_, block_.dq);
}

template class Bf16Grad<Bf16Amx>;
template class Bf16Grad<Bf16Dot>;

}  // namespace headroom

#endif
