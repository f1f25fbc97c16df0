// Attention of a few queries to a chunk of keys with AVX512_BF16 dot products or on AMX tiles. Keys are arranged so
// that a vector has one pair of elements of 16 keys, values so that it has one pair of keys of 16 elements: neither
// product needs a sum across lanes, and a query's sums are the same whatever queries are computed beside it.
#include "ops/attention/bf16_vector.h"
#include "ops/cpu/amx.h"
#include "ops/paged_attention/bf16_tile.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {
namespace {

constexpr int kTogether = 4;                          // queries whose sums stay in registers
constexpr int64_t kKeyStep = 32;                      // keys that a tile of values has
constexpr int64_t kKeyGroups = kPagedBf16Chunk / 16;  // vectors of keys

HEADROOM_AVX512_BF16 inline __m512bh pair_of(const uint16_t* at) {
  int32_t pair;
  __builtin_memcpy(&pair, at, sizeof(pair));
  return as_bf16(_mm512_set1_epi32(pair));
}

// Stores 16 keys, of which the first `count` exist, as pairs of elements.
HEADROOM_AVX512_BF16 void load_keys(const uint16_t* const* k, int64_t count, int64_t dim, uint16_t* to) {
  for (int64_t first = 0; first < dim; first += 32, to += 32 * 16) {
    const __mmask32 mask = first_words(dim - first);
    store_turned(
        [&](int key) HEADROOM_AVX512_BF16 {
          return key < count ? _mm512_maskz_loadu_epi16(mask, k[key] + first) : _mm512_setzero_si512();
        },
        to);
  }
}

// Stores values as pairs of keys; those from `count` on, up to whole steps of weigh_tile(), are zeros.
HEADROOM_AVX512_BF16 void load_values(const uint16_t* const* v, int64_t count, int64_t dim, uint16_t* to) {
  for (int64_t first = 0; first < dim; first += 32, to += 32 * kPagedBf16Chunk) {
    const __mmask32 mask = first_words(dim - first);
    for (int64_t key = 0; key < align_up(count, kKeyStep); key += 2) {
      const __m512i even = key < count ? _mm512_maskz_loadu_epi16(mask, v[key] + first) : _mm512_setzero_si512();
      const __m512i odd = key + 1 < count ? _mm512_maskz_loadu_epi16(mask, v[key + 1] + first) : _mm512_setzero_si512();
      const PairRow row = interleave_rows(even, odd);
      _mm512_store_si512(to + key * 16, row.first);
      _mm512_store_si512(to + kPagedBf16Chunk * 16 + key * 16, row.second);
    }
  }
}

struct Arranged {
  const uint16_t* k;
  const uint16_t* v;
  int64_t width, count;
  float scale, softcap;
};

// The first `keys` of 64 keys.
inline uint64_t first_keys(int64_t keys) { return keys >= 64 ? ~uint64_t{0} : (uint64_t{1} << keys) - 1; }

// The scores of kQueries queries, `width` elements apart.
template <int kQueries>
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void score(const Arranged& chunk, const uint16_t* q,
                                                                      __m512 (&scores)[kQueries][kKeyGroups]) {
#pragma GCC unroll 4
  for (auto& of : scores) {
#pragma GCC unroll 4
    for (__m512& sums : of) sums = _mm512_setzero_ps();
  }
  for (int64_t pair = 0; pair < chunk.width / 2; ++pair) {
    __m512bh keys[kKeyGroups];
#pragma GCC unroll 4
    for (int64_t group = 0; group < kKeyGroups; ++group)
      keys[group] = as_bf16(_mm512_load_si512(chunk.k + group * 16 * chunk.width + pair * 32));
#pragma GCC unroll 4
    for (int query = 0; query < kQueries; ++query) {
      const __m512bh elements = pair_of(q + query * chunk.width + 2 * pair);
#pragma GCC unroll 4
      for (int64_t group = 0; group < kKeyGroups; ++group)
        scores[query][group] = _mm512_dpbf16_ps(scores[query][group], elements, keys[group]);
    }
  }
}

inline __mmask16 seen_of(uint64_t seen, int64_t group) { return static_cast<__mmask16>(seen >> (16 * group)); }

// Scales and caps a query's scores; returns the largest of each lane among the keys that it sees.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512 scale_scores(const Arranged& chunk, uint64_t seen,
                                                                               __m512 (&scores)[kKeyGroups]) {
  static_assert(kPagedBf16Chunk == 64);
  const __m512 scale = _mm512_set1_ps(chunk.scale);
  __m512 largest = _mm512_set1_ps(-1e30f);
#pragma GCC unroll 4
  for (int64_t group = 0; group < kKeyGroups; ++group) {
    scores[group] = _mm512_mul_ps(scores[group], scale);
    if (chunk.softcap > 0) scores[group] = _mm512_mul_ps(fast_tanh(scores[group]), _mm512_set1_ps(chunk.softcap));
    largest = _mm512_mask_max_ps(largest, seen_of(seen, group), largest, scores[group]);
  }
  return largest;
}

// scores -> numerators in bf16; returns the sum of each lane.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512 exponentiate(__m512 (&scores)[kKeyGroups],
                                                                               float maximum, uint64_t seen,
                                                                               uint16_t* numerators) {
  const __m512 largest = _mm512_set1_ps(maximum);
  __m512 total = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (int64_t group = 0; group < kKeyGroups; ++group) {
    const __m512 above = exp2_for_bf16(_mm512_sub_ps(scores[group], largest));
    scores[group] = _mm512_maskz_mov_ps(seen_of(seen, group), above);
    total = _mm512_add_ps(total, scores[group]);
  }
#pragma GCC unroll 2
  for (int64_t half = 0; half < kKeyGroups / 2; ++half)
    _mm512_store_si512(numerators + half * 32, narrow_row(scores[2 * half], scores[2 * half + 1]));
  return total;
}

// Query `at` alone: its scores -> numerators, the largest score and the sum. The sum is added as across_lanes() does.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void finish_query(const Arranged& chunk,
                                                                             const Bf16Queries& of, int64_t at,
                                                                             __m512 (&scores)[kKeyGroups],
                                                                             uint16_t* numerators) {
  const uint64_t seen = first_keys(of.keys[at]);
  const float maximum = _mm512_reduce_max_ps(scale_scores(chunk, seen, scores));
  *of.maximum[at] = maximum;
  *of.sum[at] = _mm512_reduce_add_ps(exponentiate(scores, maximum, seen, numerators));
}

// o[kQueries][32 elements from `first`] = numerators times values.
template <int kQueries>
HEADROOM_AVX512_BF16 inline void weigh(const Arranged& chunk, const uint16_t* numerators, int64_t first,
                                       float* const* o) {
  const uint16_t* const values = chunk.v + first * kPagedBf16Chunk;
  __m512 low[kQueries], high[kQueries];
#pragma GCC unroll 4
  for (int query = 0; query < kQueries; ++query) low[query] = high[query] = _mm512_setzero_ps();
  for (int64_t pair = 0; pair < (chunk.count + 1) / 2; ++pair) {
    const __m512bh left = as_bf16(_mm512_load_si512(values + pair * 32));
    const __m512bh right = as_bf16(_mm512_load_si512(values + kPagedBf16Chunk * 16 + pair * 32));
#pragma GCC unroll 4
    for (int query = 0; query < kQueries; ++query) {
      const __m512bh weight = pair_of(numerators + query * kPagedBf16Chunk + 2 * pair);
      low[query] = _mm512_dpbf16_ps(low[query], weight, left);
      high[query] = _mm512_dpbf16_ps(high[query], weight, right);
    }
  }
#pragma GCC unroll 4
  for (int query = 0; query < kQueries; ++query) {
    _mm512_storeu_ps(o[query] + first, low[query]);
    _mm512_storeu_ps(o[query] + first + 16, high[query]);
  }
}

template <int kQueries>
HEADROOM_AVX512_BF16 void attend_queries(const Arranged& chunk, const Bf16Queries& of, int64_t first) {
  static_assert(kKeyGroups == 4 && kTogether == 4, "as far as loops are unrolled");
  __m512 scores[kQueries][kKeyGroups];
  score<kQueries>(chunk, of.q + first * chunk.width, scores);
  alignas(64) uint16_t numerators[kQueries * kPagedBf16Chunk];
#pragma GCC unroll 4
  for (int query = 0; query < kQueries; ++query)
    finish_query(chunk, of, first + query, scores[query], numerators + query * kPagedBf16Chunk);
  for (int64_t element = 0; element < chunk.width; element += 32)
    weigh<kQueries>(chunk, numerators, element, of.o + first);
}

// Scores of kQueryTile queries, [group of keys][query][key].
HEADROOM_AMX void score_tile(const Arranged& chunk, const uint16_t* q, float* scores) {
  static_assert(kKeyGroups == 4, "as many tiles of sums");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t* k = chunk.k;
  for (int64_t element = 0; element < chunk.width; element += 32, k += 32 * 16) {
    _tile_loadd(4, q + element, chunk.width * 2);
    _tile_loadd(5, k, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, k + 16 * chunk.width, 64);
    _tile_dpbf16ps(1, 4, 6);
    _tile_loadd(7, k + 32 * chunk.width, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_loadd(5, k + 48 * chunk.width, 64);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, scores, 64);
  _tile_stored(1, scores + kQueryTile * 16, 64);
  _tile_stored(2, scores + 2 * kQueryTile * 16, 64);
  _tile_stored(3, scores + 3 * kQueryTile * 16, 64);
  amx::order_memory();
}

// o[query][32 elements from `first`] = numerators times values, of `count` of the tile's queries.
HEADROOM_AMX void weigh_tile(const Arranged& chunk, const uint16_t* numerators, int64_t count, int64_t first,
                             float* const* o) {
  const uint16_t* const values = chunk.v + first * kPagedBf16Chunk;
  alignas(64) float sums[2 * kQueryTile * 16];
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t key = 0; key < chunk.count; key += kKeyStep) {
    _tile_loadd(4, numerators + key, kPagedBf16Chunk * 2);
    _tile_loadd(5, values + key * 16, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, values + (kPagedBf16Chunk + key) * 16, 64);
    _tile_dpbf16ps(1, 4, 6);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kQueryTile * 16, 64);
  amx::order_memory();
  for (int64_t query = 0; query < count; ++query) {
    _mm512_storeu_ps(o[query] + first, _mm512_load_ps(sums + query * 16));
    _mm512_storeu_ps(o[query] + first + 16, _mm512_load_ps(sums + (kQueryTile + query) * 16));
  }
}

// The largest or the sum of the sixteen lanes of each query, [query][lane], in a tree.
template <bool kLargest>
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void across_lanes(const float* lanes, float* to) {
  __m512i turned[16];
#pragma GCC unroll 16
  for (int query = 0; query < 16; ++query) turned[query] = _mm512_load_si512(lanes + query * 16);
  transpose16(turned);
  __m512 of[16];
#pragma GCC unroll 16
  for (int lane = 0; lane < 16; ++lane) of[lane] = _mm512_castsi512_ps(turned[lane]);
#pragma GCC unroll 4
  for (int half = 8; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int lane = 0; lane < half; ++lane)
      of[lane] = kLargest ? _mm512_max_ps(of[lane], of[lane + half]) : _mm512_add_ps(of[lane], of[lane + half]);
  }
  _mm512_store_ps(to, of[0]);
}

// A query's scores of a tile.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void load_scores(const float* scores, int64_t query,
                                                                            __m512 (&found)[kKeyGroups]) {
#pragma GCC unroll 4
  for (int64_t group = 0; group < kKeyGroups; ++group)
    found[group] = _mm512_load_ps(scores + (group * kQueryTile + query) * 16);
}

// finish_query() of many queries of a tile at once.
HEADROOM_AVX512_BF16 inline void finish_queries(const Arranged& chunk, const Bf16Queries& of, int64_t first,
                                                int64_t count, float* scores, uint16_t* numerators) {
  static_assert(kQueryTile == 16);
  alignas(64) float lanes[kQueryTile * 16], maxima[kQueryTile], sums[kQueryTile];
  std::fill(lanes + count * 16, std::end(lanes), 0.0f);
  __m512 found[kKeyGroups];
  for (int64_t query = 0; query < count; ++query) {
    load_scores(scores, query, found);
    _mm512_store_ps(lanes + query * 16, scale_scores(chunk, first_keys(of.keys[first + query]), found));
#pragma GCC unroll 4
    for (int64_t group = 0; group < kKeyGroups; ++group)
      _mm512_store_ps(scores + (group * kQueryTile + query) * 16, found[group]);
  }
  across_lanes<true>(lanes, maxima);
  for (int64_t query = 0; query < count; ++query) {
    load_scores(scores, query, found);
    _mm512_store_ps(lanes + query * 16, exponentiate(found, maxima[query], first_keys(of.keys[first + query]),
                                                     numerators + query * kPagedBf16Chunk));
  }
  across_lanes<false>(lanes, sums);
  for (int64_t query = 0; query < count; ++query) {
    *of.maximum[first + query] = maxima[query];
    *of.sum[first + query] = sums[query];
  }
}

HEADROOM_AMX void attend_tile_of_queries(const Arranged& chunk, const Bf16Queries& of, int64_t first) {
  constexpr int64_t kMany = 8;  // for which turning sixteen vectors takes less time
  const int64_t count = std::min(kQueryTile, of.count - first);
  alignas(64) float scores[kKeyGroups * kQueryTile * 16];
  score_tile(chunk, of.q + first * chunk.width, scores);
  alignas(64) uint16_t numerators[kQueryTile * kPagedBf16Chunk];
  std::fill(numerators + count * kPagedBf16Chunk, std::end(numerators), uint16_t{0});
  if (count >= kMany) {
    finish_queries(chunk, of, first, count, scores, numerators);
  } else {
    for (int64_t query = 0; query < count; ++query) {
      __m512 found[kKeyGroups];
      load_scores(scores, query, found);
      finish_query(chunk, of, first + query, found, numerators + query * kPagedBf16Chunk);
    }
  }
  amx::order_memory();
  for (int64_t element = 0; element < chunk.width; element += 32)
    weigh_tile(chunk, numerators, count, element, of.o + first);
}

}  // namespace

HEADROOM_AVX512_BF16 void Bf16Chunk::load(const uint16_t* const* k, const uint16_t* const* v, int64_t count) {
  count_ = count;
  for (int64_t group = 0; group < kKeyGroups; ++group) {
    uint16_t* const to = k_ + group * 16 * width_;
    if (group * 16 < count)
      load_keys(k + group * 16, count - group * 16, dim_, to);
    else
      std::fill_n(to, 16 * width_, uint16_t{0});
  }
  load_values(v, count, dim_, v_);
}

HEADROOM_AVX512_BF16 void Bf16Chunk::attend(const Bf16Queries& queries) const {
  const Arranged chunk{k_, v_, width_, count_, scores_.scale, scores_.softcap};
  int64_t first = 0;
  for (; first + kTogether <= queries.count; first += kTogether) attend_queries<kTogether>(chunk, queries, first);
  if (queries.count - first == 3) return attend_queries<3>(chunk, queries, first);
  if (queries.count - first == 2) return attend_queries<2>(chunk, queries, first);
  if (queries.count - first == 1) attend_queries<1>(chunk, queries, first);
}

HEADROOM_AMX void Bf16Chunk::attend_on_tiles(const Bf16Queries& queries) const {
  const Arranged chunk{k_, v_, width_, count_, scores_.scale, scores_.softcap};
  amx::order_memory();
  amx::enter_tiles();
  for (int64_t first = 0; first < queries.count; first += kQueryTile) attend_tile_of_queries(chunk, queries, first);
  amx::leave_tiles();
}

HEADROOM_AVX512_BF16 void Bf16Chunk::copy_queries(const void* q, int64_t heads, uint16_t* to) const {
  stage_rows(q, dim_, heads, heads, dim_, to, width_);
}

}  // namespace headroom

#endif
