// Forward attention with bf16 products. Scores are kept transposed, [keys][queries]: the softmax runs down the vector
// columns, and the probabilities become the right operand of the second product by interleaving two rows.
#include <cmath>
#include <numbers>

#include "ops/attention/bf16_vector.h"
#include "ops/attention/forward_bf16.h"

namespace headroom {
namespace {

constexpr float kHidden = -1e30f;  // a score no visible one reaches

// A strip's softmax state and its scores.
struct Strip {
  float* scores;  // [kKeyTile][kStrip]
  uint16_t* p;    // [kKeyTile / 2][kStrip] pairs
  float* maximum;
  float* sum;
};

HEADROOM_AVX512_BF16 void hide_unseen(float* scores, const StripStep& step) {
  const __m512 hidden = _mm512_set1_ps(kHidden);
  for (int32_t row = step.begin; row < step.end; ++row)
    for (int32_t column = 0; column < kStrip; column += 16) {
      const __mmask16 seen = columns_seeing(row, column, step);
      _mm512_mask_storeu_ps(scores + row * kStrip + column, static_cast<__mmask16>(~seen), hidden);
    }
}

// The running maximum of 16 columns with the rows of this step; keeps a NaN as the scores have it.
HEADROOM_AVX512_BF16 inline __m512 column_maximum(const float* scores, const StripStep& step, __m512 before,
                                                  __m512 scale) {
  __m512 even = _mm512_set1_ps(kHidden), odd = even;
  int32_t row = step.begin;
  for (; row + 1 < step.end; row += 2) {
    even = _mm512_max_ps(_mm512_loadu_ps(scores + row * kStrip), even);
    odd = _mm512_max_ps(_mm512_loadu_ps(scores + (row + 1) * kStrip), odd);
  }
  if (row < step.end) even = _mm512_max_ps(_mm512_loadu_ps(scores + row * kStrip), even);
  return _mm512_max_ps(_mm512_mul_ps(_mm512_max_ps(even, odd), scale), before);
}

// The probabilities of a pair of rows, added to the sums and stored as pairs.
HEADROOM_AVX512_BF16 inline void exponentiate_pair(const float* scores, uint16_t* p, bool second, __m512 scale,
                                                   const __m512 (&maximum)[2], __m512 (&sum)[2]) {
  __m512 even[2], odd[2];
  for (int half = 0; half < 2; ++half) {
    even[half] = fast_exp2(_mm512_fmsub_ps(_mm512_loadu_ps(scores + 16 * half), scale, maximum[half]));
    odd[half] = second ? fast_exp2(_mm512_fmsub_ps(_mm512_loadu_ps(scores + kStrip + 16 * half), scale, maximum[half]))
                       : _mm512_setzero_ps();
    sum[half] = _mm512_add_ps(sum[half], _mm512_add_ps(even[half], odd[half]));
  }
  const PairRow row = interleave_rows(narrow_row(even[0], even[1]), narrow_row(odd[0], odd[1]));
  _mm512_storeu_si512(p, row.first);
  _mm512_storeu_si512(p + kStrip, row.second);
}

// Scores -> pairs of probabilities for the rows [begin, end rounded up to 32). Fills the factors of what was summed
// before; returns false when they are all 1.
HEADROOM_AVX512_BF16 bool softmax_strip(const Strip& strip, const StripStep& step, float scale_factor,
                                        __m512 (&factor)[2]) {
  const __m512 scale = _mm512_set1_ps(scale_factor);
  __m512 maximum[2], sum[2];
  for (int half = 0; half < 2; ++half) {
    const __m512 before = _mm512_loadu_ps(strip.maximum + 16 * half);
    maximum[half] = column_maximum(strip.scores + 16 * half, step, before, scale);
    factor[half] = fast_exp2(_mm512_sub_ps(before, maximum[half]));
    sum[half] = _mm512_setzero_ps();
  }
  int32_t row = step.begin;
  for (; row + 1 < step.end; row += 2)
    exponentiate_pair(strip.scores + row * kStrip, strip.p + row * kStrip, true, scale, maximum, sum);
  if (row < step.end) {
    exponentiate_pair(strip.scores + row * kStrip, strip.p + row * kStrip, false, scale, maximum, sum);
    row += 2;
  }
  for (; row < round_up(step.end, 32); row += 2)
    for (int half = 0; half < 2; ++half)
      _mm512_storeu_si512(strip.p + row * kStrip + half * kStrip, _mm512_setzero_si512());
  __mmask16 changed = 0;
  for (int half = 0; half < 2; ++half) {
    _mm512_storeu_ps(strip.maximum + 16 * half, maximum[half]);
    const __m512 before = _mm512_loadu_ps(strip.sum + 16 * half);
    _mm512_storeu_ps(strip.sum + 16 * half, _mm512_fmadd_ps(before, factor[half], sum[half]));
    changed |= _mm512_cmp_ps_mask(factor[half], _mm512_set1_ps(1.0f), _CMP_NEQ_UQ);
  }
  return changed != 0;
}

HEADROOM_AVX512_BF16 void scale_columns(float* o, int64_t rows, const __m512 (&factor)[2]) {
  for (int64_t row = 0; row < rows; ++row)
    for (int half = 0; half < 2; ++half) {
      float* at = o + row * kStrip + 16 * half;
      _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), factor[half]));
    }
}

HEADROOM_AVX512_BF16 void cap_rows(float* scores, int64_t count, float factor, float cap) {
  for (int64_t i = 0; i < count; i += 16) {
    const __m512 t = fast_tanh(_mm512_mul_ps(_mm512_loadu_ps(scores + i), _mm512_set1_ps(factor)));
    _mm512_storeu_ps(scores + i, _mm512_mul_ps(t, _mm512_set1_ps(cap)));
  }
}

HEADROOM_AVX512_BF16 void attend(const Strip& strip, const StripStep& step, float scale, float* o, int64_t rows) {
  __m512 factor[2];
  if (step.masked) hide_unseen(strip.scores, step);
  if (softmax_strip(strip, step, scale, factor)) scale_columns(o, rows, factor);
}

// o is transposed, [width][kStrip]; `staging` holds kStrip rows of width.
HEADROOM_AVX512_BF16 void store_rows(const float* o, const float* sum, int64_t width, int64_t dim, float* staging,
                                     uint16_t* to, int64_t stride, int64_t rows) {
  transpose_words32(o, kStrip, width, kStrip, staging, width);
  for (int64_t i = 0; i < rows; ++i) {
    const __m512 factor = _mm512_set1_ps(1.0f / sum[i]);
    for (int64_t j = 0; j < dim; j += 32) {
      const float* from = staging + i * width + j;
      const __m512i row =
          narrow_row(_mm512_mul_ps(_mm512_loadu_ps(from), factor), _mm512_mul_ps(_mm512_loadu_ps(from + 16), factor));
      const int64_t left = dim - j;
      const __mmask32 mask = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      _mm512_mask_storeu_epi16(to + i * stride + j, mask, row);
    }
  }
}

HEADROOM_AVX512_BF16 void pack_queries(const uint16_t* rows, int64_t width, uint16_t* to) {
  transpose_words32(rows, width / 2, kStrip, width / 2, to, kStrip);
}

HEADROOM_AVX512_BF16 void pack_values(const uint16_t* rows, int64_t width, int64_t count, uint16_t* to) {
  transpose_bf16(rows, width, count, width, to, kKeyTile);
}

}  // namespace

template <typename Products>
Bf16Forward<Products>::Bf16Forward(const ForwardCall& call, std::byte* block)
    : shape_(call.shape), width_(padded_dim(call.shape.dim)) {
  Carver carver(block);
  block_ = forward_bf16_block(carver, call.shape);
  Products::enter();
}

template <typename Products>
void Bf16Forward<Products>::load_queries(int64_t lane, const void* q, int64_t rows) {
  stage_rows(q, shape_.heads * shape_.dim, rows, kStrip, shape_.dim, block_.k, width_);
  pack_queries(block_.k, width_, block_.q + lane * width_ * kStrip);
  std::fill_n(block_.o + lane * width_ * kStrip, width_ * kStrip, 0.0f);
  std::fill_n(block_.maximum + lane * kStrip, kStrip, kHidden);
  std::fill_n(block_.sum + lane * kStrip, kStrip, 0.0f);
}

template <typename Products>
void Bf16Forward<Products>::load_keys(const void* k, const void* v, int64_t count) {
  const int64_t stride = shape_.kv_heads * shape_.dim, all = round_up(count, 32);
  stage_rows(v, stride, count, all, shape_.dim, block_.k, width_);
  pack_values(block_.k, width_, all, block_.v);
  stage_rows(k, stride, count, all, shape_.dim, block_.k, width_);
}

template <typename Products>
void Bf16Forward<Products>::step(int64_t lane, const StripStep& step) {
  const int64_t rows = round_up(step.end, 32) - step.begin;
  float* o = block_.o + lane * width_ * kStrip;
  Products::multiply({block_.k + step.begin * width_, width_, block_.q + lane * width_ * kStrip, kStrip,
                      block_.scores + step.begin * kStrip, kStrip, rows, kStrip, width_, false});
  double scale = shape_.scale * std::numbers::log2e;
  if (shape_.softcap > 0) {
    cap_rows(block_.scores + step.begin * kStrip, rows * kStrip, static_cast<float>(shape_.scale / shape_.softcap),
             static_cast<float>(shape_.softcap));
    scale = std::numbers::log2e;
  }
  attend({block_.scores, block_.p, block_.maximum + lane * kStrip, block_.sum + lane * kStrip}, step,
         static_cast<float>(scale), o, width_);
  Products::multiply(
      {block_.v + step.begin, kKeyTile, block_.p + step.begin * kStrip, kStrip, o, kStrip, width_, kStrip, rows, true});
}

template <typename Products>
void Bf16Forward<Products>::store(int64_t lane, void* o, float* lse, int64_t rows) {
  const float* maximum = block_.maximum + lane * kStrip;
  const float* sum = block_.sum + lane * kStrip;
  store_rows(block_.o + lane * width_ * kStrip, sum, width_, shape_.dim, reinterpret_cast<float*>(block_.k),
             static_cast<uint16_t*>(o), shape_.heads * shape_.dim, rows);
  if (!lse) return;
  for (int64_t i = 0; i < rows; ++i) lse[i] = maximum[i] * std::numbers::ln2_v<float> + std::log(sum[i]);
}

template class Bf16Forward<Bf16Amx>;
template class Bf16Forward<Bf16Dot>;

}  // namespace headroom
