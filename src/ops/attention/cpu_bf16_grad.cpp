// Gradient of attention with bf16 products. Scores and their gradient are kept transposed, [keys][queries]: as rows
// of bf16 they are the left operands of dv and dk, with two rows interleaved the right operand of dq (transposed).
#include <numbers>

#include "ops/attention/bf16_vector.h"
#include "ops/attention/grad_bf16.h"

namespace headroom {
namespace {

constexpr int64_t kGradColumns = kGradStripsBf16 * kStrip;

// rowsum(do * o) of one row.
HEADROOM_AVX512_BF16 float row_product(const uint16_t* a, const uint16_t* b, int64_t count) {
  __m512 even = _mm512_setzero_ps(), odd = even;
  const __m512i high = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u));
  for (int64_t i = 0; i < count; i += 32) {
    const __m512i x = _mm512_loadu_si512(a + i), y = _mm512_loadu_si512(b + i);
    even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)), _mm512_castsi512_ps(_mm512_slli_epi32(y, 16)),
                           even);
    odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, high)),
                          _mm512_castsi512_ps(_mm512_and_si512(y, high)), odd);
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
}

// The staged rows of a query tile in the two layouts that the products read.
HEADROOM_AVX512_BF16 void pack_rows(const uint16_t* rows, int64_t width, uint16_t* transposed, uint16_t* pairs) {
  for (int64_t strip = 0; strip < kGradStripsBf16; ++strip)
    transpose_words32(rows + strip * kStrip * width, width / 2, kStrip, width / 2, transposed + strip * kStrip * width,
                      kStrip);
  pair_rows(rows, width, kGradColumns, width, pairs);
}

HEADROOM_AVX512_BF16 void pack_keys(const uint16_t* rows, int64_t width, uint16_t* to) {
  transpose_bf16(rows, width, kGradKeys, width, to, kGradKeys);
}

// What one strip reads and writes in a step.
struct StripScores {
  const float* scores;  // [kGradKeys][kStrip]
  const float* dp;
  const float* lse;  // of the strip's columns
  const float* rowsum;
  uint16_t* p;         // the strip's columns of [kGradKeys][kGradColumns]
  uint16_t* ds;        // likewise
  uint16_t* ds_pairs;  // [kGradKeys / 2][kStrip] pairs, columns in the order of pair_column
};

// How a product of a query and a key becomes a score in the base-2 domain: scale s, or cap tanh(inner s).
struct ScoreRule {
  __m512 scale;
  __m512 cap;  // in the base-2 domain
  __m512 inner;
};

// p = exp(score - lse) and ds = p (dp - rowsum), times the slope of the cap, of one row as bf16.
struct GradRow {
  __m512i p;
  __m512i ds;
};
template <bool kCapped>
HEADROOM_AVX512_BF16 inline GradRow grad_row(const StripScores& strip, const StripStep& step, int32_t row,
                                             const ScoreRule& rule) {
  __m512 p[2], ds[2];
  for (int half = 0; half < 2; ++half) {
    const float* at = strip.scores + row * kStrip + 16 * half;
    const float* dp = strip.dp + row * kStrip + 16 * half;
    __m512 s = _mm512_loadu_ps(at);
    if constexpr (kCapped) s = fast_tanh(_mm512_mul_ps(s, rule.inner));
    const __m512 scale = kCapped ? rule.cap : rule.scale;
    p[half] = fast_exp2(_mm512_fmsub_ps(s, scale, _mm512_loadu_ps(strip.lse + 16 * half)));
    if (step.masked) p[half] = _mm512_maskz_mov_ps(columns_seeing(row, 16 * half, step), p[half]);
    ds[half] = _mm512_mul_ps(p[half], _mm512_sub_ps(_mm512_loadu_ps(dp), _mm512_loadu_ps(strip.rowsum + 16 * half)));
    if constexpr (kCapped) ds[half] = _mm512_mul_ps(ds[half], _mm512_fnmadd_ps(s, s, _mm512_set1_ps(1.0f)));
  }
  return {narrow_row(p[0], p[1]), narrow_row(ds[0], ds[1])};
}

HEADROOM_AVX512_BF16 inline void store_pair(const StripScores& strip, int32_t row, const GradRow& even,
                                            const GradRow& odd) {
  _mm512_storeu_si512(strip.p + row * kGradColumns, even.p);
  _mm512_storeu_si512(strip.p + (row + 1) * kGradColumns, odd.p);
  _mm512_storeu_si512(strip.ds + row * kGradColumns, even.ds);
  _mm512_storeu_si512(strip.ds + (row + 1) * kGradColumns, odd.ds);
  _mm512_storeu_si512(strip.ds_pairs + row * kStrip, _mm512_unpacklo_epi16(even.ds, odd.ds));
  _mm512_storeu_si512(strip.ds_pairs + (row + 1) * kStrip, _mm512_unpackhi_epi16(even.ds, odd.ds));
}

// The rows [begin, end rounded up to 32) of the step; what lies behind `end` becomes zero.
template <bool kCapped>
HEADROOM_AVX512_BF16 void grad_rows(const StripScores& strip, const StripStep& step, const ScoreRule& rule) {
  const GradRow zero{_mm512_setzero_si512(), _mm512_setzero_si512()};
  int32_t row = step.begin;
  for (; row + 1 < step.end; row += 2)
    store_pair(strip, row, grad_row<kCapped>(strip, step, row, rule), grad_row<kCapped>(strip, step, row + 1, rule));
  if (row < step.end) {
    store_pair(strip, row, grad_row<kCapped>(strip, step, row, rule), zero);
    row += 2;
  }
  for (; row < round_up(step.end, 32); row += 2) store_pair(strip, row, zero, zero);
}

HEADROOM_AVX512_BF16 void grad_scores(const StripScores& strip, const StripStep& step, double scale, double softcap) {
  const ScoreRule rule{_mm512_set1_ps(static_cast<float>(scale * std::numbers::log2e)),
                       _mm512_set1_ps(static_cast<float>(softcap * std::numbers::log2e)),
                       _mm512_set1_ps(softcap > 0 ? static_cast<float>(scale / softcap) : 0.0f)};
  softcap > 0 ? grad_rows<true>(strip, step, rule) : grad_rows<false>(strip, step, rule);
}

void clear_rows(uint16_t* p, uint16_t* ds, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    std::fill_n(p + row * kGradColumns, kStrip, uint16_t{0});
    std::fill_n(ds + row * kGradColumns, kStrip, uint16_t{0});
  }
}

// A strip of dq from [width][kStrip] with columns in the order of pair_column, scaled.
HEADROOM_AVX512_BF16 void store_strip(const float* dq_t, int64_t width, int64_t dim, float scale, float* staging,
                                      uint16_t* to, int64_t stride, int64_t rows) {
  transpose_words32(dq_t, kStrip, width, kStrip, staging, width);
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t i = 0; i < kStrip; ++i) {
    if (pair_column(i) >= rows) continue;
    for (int64_t j = 0; j < dim; j += 32) {
      const float* from = staging + i * width + j;
      const __m512i row =
          narrow_row(_mm512_mul_ps(_mm512_loadu_ps(from), factor), _mm512_mul_ps(_mm512_loadu_ps(from + 16), factor));
      const int64_t left = dim - j;
      const __mmask32 mask = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      _mm512_mask_storeu_epi16(to + pair_column(i) * stride + j, mask, row);
    }
  }
}

}  // namespace

template <typename Products>
Bf16Grad<Products>::Bf16Grad(const GradCall& call, std::byte* block)
    : shape_(call.shape), width_(padded_dim(call.shape.dim)) {
  Carver carver(block);
  block_ = grad_bf16_block(carver, call.shape);
  Products::enter();
}

template <typename Products>
void Bf16Grad<Products>::begin(const void* k, const void* v) {
  k_ = static_cast<const uint16_t*>(k);
  v_ = static_cast<const uint16_t*>(v);
  const int64_t stride = shape_.kv_heads * shape_.dim, rows = round_up(shape_.keys, kGradKeys);
  std::fill_n(block_.dk, rows * width_, 0.0f);
  std::fill_n(block_.dv, rows * width_, 0.0f);
  for (int64_t tile = 0; tile < shape_.keys; tile += kGradKeys) {
    const int64_t count = std::min(kGradKeys, shape_.keys - tile);
    stage_rows(k_ + tile * stride, stride, count, kGradKeys, shape_.dim, block_.k, width_);
    pack_keys(block_.k, width_, block_.k_t + tile * width_);
  }
}

template <typename Products>
void Bf16Grad<Products>::load_queries(const QueryTile& tile) {
  const int64_t stride = shape_.heads * shape_.dim;
  uint16_t* first = reinterpret_cast<uint16_t*>(block_.dq_t);
  uint16_t* second = first + kColumns * width_;
  stage_rows(tile.grad_o, stride, tile.rows, kColumns, shape_.dim, first, width_);
  stage_rows(tile.o, stride, tile.rows, kColumns, shape_.dim, second, width_);
  for (int64_t i = 0; i < kColumns; ++i) {
    block_.rowsum[i] = row_product(first + i * width_, second + i * width_, width_);
    block_.lse[i] = i < tile.rows ? tile.lse[i] * std::numbers::log2e_v<float> : 0.0f;
  }
  pack_rows(first, width_, block_.grad_o_t, block_.grad_o);
  stage_rows(tile.q, stride, tile.rows, kColumns, shape_.dim, second, width_);
  pack_rows(second, width_, block_.q_t, block_.q);
  std::fill_n(block_.dq_t, width_ * kColumns, 0.0f);
}

template <typename Products>
typename Bf16Grad<Products>::Range Bf16Grad<Products>::range_of(std::span<const StripStep> steps) {
  Range range;
  for (size_t strip = 0; strip < steps.size(); ++strip) {
    if (steps[strip].begin >= steps[strip].end) continue;
    range.begin = std::min<int64_t>(range.begin, steps[strip].begin);
    range.end = std::max<int64_t>(range.end, round_up(steps[strip].end, 32));
    range.first = std::min(range.first, static_cast<int64_t>(strip));
    range.last = static_cast<int64_t>(strip) + 1;
  }
  return range;
}

template <typename Products>
void Bf16Grad<Products>::strip_step(int64_t tile, int64_t strip, const StripStep& step, const Range& range) {
  uint16_t* p = block_.p + strip * kStrip;
  uint16_t* ds = block_.ds + strip * kStrip;
  if (step.begin >= step.end) return clear_rows(p, ds, range.begin, range.end);
  const int64_t begin = step.begin, end = round_up(step.end, 32), rows = end - begin;
  const int64_t packed = strip * kStrip * width_;
  Products::multiply({block_.k + begin * width_, width_, block_.q_t + packed, kStrip, block_.scores + begin * kStrip,
                      kStrip, rows, kStrip, width_, false});
  Products::multiply({block_.v + begin * width_, width_, block_.grad_o_t + packed, kStrip, block_.dp + begin * kStrip,
                      kStrip, rows, kStrip, width_, false});
  grad_scores(
      {block_.scores, block_.dp, block_.lse + strip * kStrip, block_.rowsum + strip * kStrip, p, ds, block_.ds_pairs},
      step, shape_.scale, shape_.softcap);
  clear_rows(p, ds, range.begin, begin);
  clear_rows(p, ds, end, range.end);
  Products::multiply({block_.k_t + tile * width_ + begin, kGradKeys, block_.ds_pairs + begin * kStrip, kStrip,
                      block_.dq_t + packed, kStrip, width_, kStrip, rows, true});
}

template <typename Products>
void Bf16Grad<Products>::step(int64_t tile, int64_t count, std::span<const StripStep> steps) {
  const Range range = range_of(steps);
  if (range.begin >= range.end) return;
  const int64_t stride = shape_.kv_heads * shape_.dim, all = round_up(count, 32);
  stage_rows(k_ + tile * stride, stride, count, all, shape_.dim, block_.k, width_);
  stage_rows(v_ + tile * stride, stride, count, all, shape_.dim, block_.v, width_);
  for (int64_t strip = range.first; strip < range.last; ++strip)
    strip_step(tile, strip, steps[static_cast<size_t>(strip)], range);
  const int64_t at = range.begin * kColumns + range.first * kStrip, packed = range.first * kStrip * width_;
  const int64_t sums = (tile + range.begin) * width_, depth = (range.last - range.first) * kStrip;
  const int64_t rows = range.end - range.begin;
  Products::multiply(
      {block_.p + at, kColumns, block_.grad_o + packed, width_, block_.dv + sums, width_, rows, width_, depth, true});
  Products::multiply(
      {block_.ds + at, kColumns, block_.q + packed, width_, block_.dk + sums, width_, rows, width_, depth, true});
}

template <typename Products>
void Bf16Grad<Products>::store_queries(void* dq, int64_t rows) {
  const int64_t stride = shape_.heads * shape_.dim;
  for (int64_t strip = 0; strip * kStrip < rows; ++strip)
    store_strip(block_.dq_t + strip * kStrip * width_, width_, shape_.dim, static_cast<float>(shape_.scale),
                reinterpret_cast<float*>(block_.k), static_cast<uint16_t*>(dq) + strip * kStrip * stride, stride,
                std::min(kStrip, rows - strip * kStrip));
}

template class Bf16Grad<Bf16Amx>;
template class Bf16Grad<Bf16Dot>;

}  // namespace headroom
