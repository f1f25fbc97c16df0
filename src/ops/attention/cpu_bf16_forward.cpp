// Forward attention with bf16 products. Scores are [queries][keys], so the softmax numerators are the left operand of
// the second product without rearrangement.
#include <algorithm>
#include <numbers>
#include <span>

#include "ops/attention/bf16_vector.h"
#include "ops/attention/forward_bf16.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {
namespace {

constexpr float kNoReference = -1e30f;
constexpr float kLargestSum = 0x1p40f;  // of a chunk's numerators, in each vector lane

// A strip's numerators and the state of its queries: a query's numerators are exp2(score - reference). The reference is
// the largest score of the first chunk in which the query sees a key; it is raised when numerators grow far above 1.
struct Strip {
  uint16_t* p;       // [kBf16Keys / 32][kStrip][32]
  float* reference;  // [kStrip]
  float* sum;        // [kStrip][16]
  float* o;          // [kStrip][width]
  int64_t width;
  float scale;
  int64_t tile;                     // the key of row 0
  uint32_t below;                   // of DropoutRate
  const RowKeys<kStrip>& row_keys;  // used if scores are dropped
  uint16_t* numerators(int32_t query, int32_t key) const { return p + key * kStrip + query * 32; }
  // A mask of the 32 keys from `key`: those that are not dropped.
  HEADROOM_AVX512_BF16 __mmask32 kept(int32_t query, int32_t key) const {
    const auto at = static_cast<size_t>(query);
    return kept_words(row_keys.low[at], row_keys.high[at], tile + key, below);
  }
};

// The keys [begin, end) of a step with their scores; both are multiples of 32.
struct Chunk {
  const float* scores;  // [kStrip][kScoreKeys]
  int32_t begin;
  int32_t end;
  const float* row(int32_t query) const { return scores + query * kScoreKeys - begin; }  // indexed by key
};

// Computes a query's numerators: zero outside `seen`, and zero for dropped scores, which still count in the sums.
// Returns the sums by lane.
template <bool kMasked, bool kDropped>
HEADROOM_AVX512_BF16 inline __m512 exponentiate(const Strip& strip, const Chunk& chunk, int32_t query,
                                                const KeySpan& seen) {
  const __m512 scale = _mm512_set1_ps(strip.scale), reference = _mm512_set1_ps(strip.reference[query]);
  const float* scores = chunk.row(query);
  __m512 sum = _mm512_setzero_ps();
  for (int32_t key = chunk.begin; key < chunk.end; key += 32) {
    __m512 low = exp2_for_bf16(_mm512_fmsub_ps(_mm512_loadu_ps(scores + key), scale, reference));
    __m512 high = exp2_for_bf16(_mm512_fmsub_ps(_mm512_loadu_ps(scores + key + 16), scale, reference));
    if constexpr (kMasked) {
      low = _mm512_maskz_mov_ps(seen.mask16(key), low);
      high = _mm512_maskz_mov_ps(seen.mask16(key + 16), high);
    }
    sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
    __m512i numerators = narrow_row(low, high);
    if constexpr (kDropped) numerators = _mm512_maskz_mov_epi16(strip.kept(query, key), numerators);
    _mm512_storeu_si512(strip.numerators(query, key), numerators);
  }
  return sum;
}

HEADROOM_AVX512_BF16 void scale_floats(float* numbers, int64_t count, __m512 factor) {
  for (float* at = numbers; at < numbers + count; at += 16)
    _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), factor));
}

// The largest score of a query in a chunk. Ignores NaN, which the numerators keep.
HEADROOM_AVX512_BF16 float largest_score(const Strip& strip, const Chunk& chunk, int32_t query, const KeySpan& seen) {
  const __m512 scale = _mm512_set1_ps(strip.scale);
  __m512 largest = _mm512_set1_ps(kNoReference);
  for (int32_t key = chunk.begin; key < chunk.end; key += 16) {
    const __m512 scores = _mm512_mul_ps(_mm512_loadu_ps(chunk.row(query) + key), scale);
    largest = _mm512_mask_max_ps(largest, seen.mask16(key), scores, largest);
  }
  return _mm512_reduce_max_ps(largest);
}

// Moves a query's reference to the largest score of the chunk and rescales what was computed with the old one: the
// numerators of this step from `first`, the sums and the output.
HEADROOM_AVX512_BF16 void raise_reference(const Strip& strip, const Chunk& chunk, int32_t query, const KeySpan& seen,
                                          int32_t first) {
  const __m512 before = _mm512_set1_ps(strip.reference[query]);
  const float largest = largest_score(strip, chunk, query, seen);
  strip.reference[query] = largest;
  const __m512 factor = fast_exp2<Exponential::fine>(_mm512_sub_ps(before, _mm512_set1_ps(largest)));
  for (int32_t key = first; key < chunk.begin; key += 32) {
    uint16_t* at = strip.numerators(query, key);
    _mm512_storeu_si512(
        at, narrow_row(_mm512_mul_ps(widen_words(at), factor), _mm512_mul_ps(widen_words(at + 16), factor)));
  }
  scale_floats(strip.sum + query * 16, 16, factor);
  scale_floats(strip.o + query * strip.width, strip.width, factor);
}

template <bool kMasked, bool kDropped>
HEADROOM_AVX512_BF16 void attend_rows(const Strip& strip, const StripStep& step, const Chunk& chunk,
                                      std::span<RowsAhead> ahead) {
  const __m512 limit = _mm512_set1_ps(kLargestSum);
  for (int32_t query = 0; query < kStrip; ++query) {
    if (query % 4 == 0)
      for (RowsAhead& rows : ahead) rows.bring_row();
    const KeySpan seen = keys_seen(step, query);
    if (strip.reference[query] == kNoReference) strip.reference[query] = largest_score(strip, chunk, query, seen);
    __m512 sum = exponentiate<kMasked, kDropped>(strip, chunk, query, seen);
    if (_mm512_cmp_ps_mask(sum, limit, _CMP_GT_OQ) != 0) {
      raise_reference(strip, chunk, query, seen, step.begin);
      sum = exponentiate<kMasked, kDropped>(strip, chunk, query, seen);
    }
    _mm512_storeu_ps(strip.sum + query * 16, _mm512_add_ps(_mm512_loadu_ps(strip.sum + query * 16), sum));
  }
}

// Scores to numerators, for one chunk of a step.
HEADROOM_AVX512_BF16 void attend(const Strip& strip, const StripStep& step, const Chunk& chunk,
                                 std::span<RowsAhead> ahead) {
  const bool masked = step.hides(chunk.begin, chunk.end);
  if (strip.below > 0)
    return masked ? attend_rows<true, true>(strip, step, chunk, ahead)
                  : attend_rows<false, true>(strip, step, chunk, ahead);
  masked ? attend_rows<true, false>(strip, step, chunk, ahead) : attend_rows<false, false>(strip, step, chunk, ahead);
}

HEADROOM_AVX512_BF16 void cap_scores(float* scores, float factor, float cap) {
  for (float* at = scores; at < scores + kStrip * kScoreKeys; at += 16) {
    const __m512 t = fast_tanh(_mm512_mul_ps(_mm512_loadu_ps(at), _mm512_set1_ps(factor)));
    _mm512_storeu_ps(at, _mm512_mul_ps(t, _mm512_set1_ps(cap)));
  }
}

// The sums of 16 queries; `sums` is [16][16].
HEADROOM_AVX512_BF16 __m512 add_lanes(const float* sums) {
  __m512i rows[16];
  for (int i = 0; i < 16; ++i) rows[i] = _mm512_loadu_si512(sums + 16 * i);
  transpose16(rows);
  __m512 sum = _mm512_castsi512_ps(rows[0]);
  for (int i = 1; i < 16; ++i) sum = _mm512_add_ps(sum, _mm512_castsi512_ps(rows[i]));
  return sum;
}

// The factors of a strip's output (`scale` over the sums), and its lse.
HEADROOM_AVX512_BF16 void finish_strip(const float* references, const float* sums, float scale, float* factors,
                                       float* lse) {
  for (int64_t half = 0; half < kStrip; half += 16) {
    const __m512 sum = add_lanes(sums + 16 * half), reference = _mm512_loadu_ps(references + half);
    _mm512_storeu_ps(factors + half, _mm512_div_ps(_mm512_set1_ps(scale), sum));
    _mm512_storeu_ps(lse + half, _mm512_fmadd_ps(reference, _mm512_set1_ps(std::numbers::ln2_v<float>), log_of(sum)));
  }
}

}  // namespace

template <typename Products>
Bf16Forward<Products>::Bf16Forward(const ForwardCall& call, std::byte* block)
    : shape_(call.shape), width_(padded_dim(call.shape.dim)), dropout_(call.dropout), row_keys_{} {
  Carver carver(block);
  block_ = forward_bf16_block(carver, call.shape);
  Products::enter();
}

template <typename Products>
void Bf16Forward<Products>::load_queries(int64_t lane, const void* q, int64_t rows, int64_t scores) {
  if (dropout_.drops()) row_keys_[static_cast<size_t>(lane)].fill(dropout_, scores);
  stage_rows(q, shape_.heads * shape_.dim, rows, kStrip, shape_.dim, block_.q + lane * kStrip * width_, width_);
  std::fill_n(block_.o + lane * kStrip * width_, kStrip * width_, 0.0f);
  std::fill_n(block_.reference + lane * kStrip, kStrip, kNoReference);
  std::fill_n(block_.sum + lane * kStrip * 16, kStrip * 16, 0.0f);
}

template <typename Products>
void Bf16Forward<Products>::load_keys(const void* k, const void* v, int64_t count) {
  const int64_t stride = shape_.kv_heads * shape_.dim;
  for (int64_t first = 0; first < count; first += kScoreKeys) {
    const int64_t here = std::min(kScoreKeys, count - first), all = align_up(here, 32);
    stage_rows(static_cast<const uint16_t*>(k) + first * stride, stride, here, all, shape_.dim, block_.rows, width_);
    pack_transposed(block_.rows, width_, all, block_.k + first * width_);
    stage_rows(static_cast<const uint16_t*>(v) + first * stride, stride, here, all, shape_.dim, block_.rows, width_);
    pack_rows(block_.rows, width_, all, block_.v + first * 32, 32 * kBf16Keys);
  }
}

template <typename Products>
float* Bf16Forward<Products>::score(int64_t lane, int64_t begin, int64_t keys) {
  float* scores = block_.scores + begin / kScoreKeys % 2 * kStrip * kScoreKeys;
  Products::multiply({block_.q + lane * kStrip * width_, width_, 32, block_.k + begin * width_, 32 * width_, scores,
                      kScoreKeys, kStrip, keys, width_, false});
  if (shape_.softcap > 0)
    cap_scores(scores, static_cast<float>(shape_.scale / shape_.softcap), static_cast<float>(shape_.softcap));
  return scores;
}

template <typename Products>
void Bf16Forward<Products>::step(int64_t lane, const StripStep& step) {
  const double scale = (shape_.softcap > 0 ? 1 : shape_.scale) * std::numbers::log2e;
  const Strip strip{block_.p,
                    block_.reference + lane * kStrip,
                    block_.sum + lane * kStrip * 16,
                    block_.o + lane * kStrip * width_,
                    width_,
                    static_cast<float>(scale),
                    step.tile,
                    dropout_.rate.below,
                    row_keys_[static_cast<size_t>(lane)]};
  const int64_t begin = step.begin, end = align_up(step.end, 32);
  const auto chunk_at = [&](int64_t first) {
    const int64_t last = std::min(first + kScoreKeys, end);
    return Chunk{score(lane, first, last - first), static_cast<int32_t>(first), static_cast<int32_t>(last)};
  };
  Chunk next = chunk_at(begin);
  for (int64_t first = begin; first < end; first += kScoreKeys) {
    const Chunk chunk = next;
    if (first + kScoreKeys < end) next = chunk_at(first + kScoreKeys);
    attend(strip, step, chunk, ahead_);
  }
  Products::multiply({block_.p + begin * kStrip, 32, 32 * kStrip, block_.v + begin * 32, 32 * kBf16Keys, strip.o,
                      width_, kStrip, width_, end - begin, true});
}

template <typename Products>
void Bf16Forward<Products>::store(int64_t lane, void* o, float* lse, int64_t rows) {
  float factors[kStrip], strip_lse[kStrip];
  finish_strip(block_.reference + lane * kStrip, block_.sum + lane * kStrip * 16, dropout_.rate.scale, factors,
               strip_lse);
  for (int64_t i = 0; i < rows; ++i)
    store_row(block_.o + (lane * kStrip + i) * width_, factors[i], shape_.dim,
              static_cast<uint16_t*>(o) + i * shape_.heads * shape_.dim);
  if (lse) std::copy_n(strip_lse, rows, lse);
}

template class Bf16Forward<Bf16Amx>;
template class Bf16Forward<Bf16Dot>;

}  // namespace headroom

#endif
