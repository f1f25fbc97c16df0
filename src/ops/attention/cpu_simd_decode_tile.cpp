// Several queries of one sequence over a chunk of keys, which is transposed once for all of them. Scores are summed in
// the order used for a single query: its lanes are separate chains here, added in the same tree.
#include "ops/attention/decode_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_TARGET_INCLUDE "ops/attention/cpu_simd_decode_tile.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/attention/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Transposes four rows into columns[element][lane], from lane `to`.
template <typename T>
HWY_INLINE void transpose_four(const T* const* rows, int64_t dim, float* columns) {
  const VectorTag d;
  const hn::Repartition<uint64_t, VectorTag> wide;
  const hn::FixedTag<float, 4> block;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  alignas(64) float parts[4][HWY_LANES(float)];
  for (int64_t i = 0; i < dim; i += lanes) {
    const Vector a = load_wide(rows[0] + i), b = load_wide(rows[1] + i), c = load_wide(rows[2] + i),
                 e = load_wide(rows[3] + i);
    const auto ab = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
               ce = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
    const auto ab2 = hn::BitCast(wide, hn::InterleaveUpper(d, a, b)),
               ce2 = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
    hn::Store(hn::BitCast(d, hn::InterleaveLower(wide, ab, ce)), d, parts[0]);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(wide, ab, ce)), d, parts[1]);
    hn::Store(hn::BitCast(d, hn::InterleaveLower(wide, ab2, ce2)), d, parts[2]);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(wide, ab2, ce2)), d, parts[3]);
    for (int64_t at = 0; at < lanes; at += 4) {
      HWY_UNROLL(4)
      for (int64_t j = 0; j < 4; ++j) hn::Store(hn::Load(block, parts[j] + at), block, columns + (i + at + j) * lanes);
    }
  }
}

// Scores of kQueries queries with a vector of keys, whose element e is keys[e * lanes].
template <int kQueries>
HWY_INLINE void score_columns(const float* q, const float* keys, int64_t dim, float* scores) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[kQueries];
  for (int64_t at = 0; at < lanes; at += 4) {
    Vector chains[kQueries][4];
    HWY_UNROLL(4)
    for (auto& of : chains) {
      HWY_UNROLL(4)
      for (Vector& chain : of) chain = hn::Zero(d);
    }
    for (int64_t i = at; i < dim; i += lanes) {
      HWY_UNROLL(4)
      for (int l = 0; l < 4; ++l) {
        const Vector key = hn::Load(d, keys + (i + l) * lanes);
        HWY_UNROLL(4)
        for (int h = 0; h < kQueries; ++h)
          chains[h][l] = hn::MulAdd(hn::Set(d, q[h * kMaxFastDim + i + l]), key, chains[h][l]);
      }
    }
    HWY_UNROLL(4)
    for (int h = 0; h < kQueries; ++h) {
      const Vector sum = hn::Add(hn::Add(chains[h][0], chains[h][2]), hn::Add(chains[h][1], chains[h][3]));
      sums[h] = at == 0 ? sum : hn::Add(sums[h], sum);
    }
  }
  HWY_UNROLL(4)
  for (int h = 0; h < kQueries; ++h) hn::StoreU(sums[h], d, scores + h * kDecodeChunk);
}

template <typename T>
HWY_INLINE void score_all(const DecodeItem& item, const float* q, int64_t queries, float* scores) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(VectorTag()));
  alignas(64) float columns[HWY_LANES(float) * kMaxFastDim];
  const T* const k = static_cast<const T*>(item.k);
  for (int64_t i = 0; i < item.count; i += lanes) {
    for (int64_t j = 0; j < lanes; j += 4) {
      const T* rows[4];
      for (int64_t l = 0; l < 4; ++l) rows[l] = k + std::min(i + j + l, item.count - 1) * item.stride;
      transpose_four(rows, item.dim, columns + j);
    }
    in_groups(queries, [&](auto count, int64_t h) HWY_ATTR {
      score_columns<decltype(count)::value>(q + h * kMaxFastDim, columns, item.dim, scores + h * kDecodeChunk + i);
    });
  }
}
#endif

// Sums the values, weighted, for the queries of all rows.
template <typename T>
HWY_INLINE void weigh_all(const DecodeItem* items, int rows, const float* p) {
  const DecodeItem& first = items[0];
  float* o[kTileQueries];
  int64_t queries = 0;
  for (int row = 0; row < rows; ++row)
    for (int h = 0; h < first.heads; ++h) o[queries++] = items[row].o + h * items[row].o_stride;
  in_groups(queries, [&](auto count, int64_t at)
                         HWY_ATTR { weigh_values<decltype(count)::value, T>(first, p + at * kDecodeChunk, o + at); });
}

void attend_tile(const DecodeItem* items, int rows, const float* q) {
#if HWY_TARGET != HWY_SCALAR
  const DecodeItem& first = items[0];
  const int64_t heads = first.heads;
  alignas(64) float scores[kTileQueries * kDecodeChunk];
  with_keys(first.kv_dtype, [&](auto key) HWY_ATTR {
    using T = decltype(key);
    score_all<T>(first, q, rows * heads, scores);
    for (int row = 0; row < rows; ++row) {
      const DecodeItem& item = items[row];
      float* const own = scores + row * heads * kDecodeChunk;
      scale_scores<T>(item, item.k, own);
      for (int64_t h = 0; h < heads; ++h) {
        float* const of = own + h * kDecodeChunk;
        if (item.softcap > 0) cap_scores(of, item.count, 1.0f, item.softcap);
        item.maximum[h * item.part_stride] = exponentiate(of, item.count, item.sum + h * item.part_stride);
      }
      scale_scores<T>(item, item.v, own);
    }
    weigh_all<T>(items, rows, scores);
  });
#else
  (void)q;
  for (int row = 0; row < rows; ++row) attend_chunk(items[row]);
#endif
}

void add_queries(const DecodeItem& item, float* to) { scale_queries(item, to); }

int64_t tile_lanes() { return HWY_TARGET == HWY_SCALAR ? 0 : static_cast<int64_t>(hn::Lanes(VectorTag())); }

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(attend_tile);
HWY_EXPORT(add_queries);
HWY_EXPORT(tile_lanes);

void DecodeTile::add_row(const DecodeItem& item) {
  HWY_DYNAMIC_DISPATCH(add_queries)(item, queries_ + rows_++ * item.heads * kMaxFastDim);
}

void DecodeTile::attend(const DecodeItem* items) const { HWY_DYNAMIC_DISPATCH(attend_tile)(items, rows_, queries_); }

bool tiles_queries(int64_t dim) {
  const int64_t lanes = HWY_DYNAMIC_DISPATCH(tile_lanes)();
  return lanes > 0 && dim % lanes == 0;
}

}  // namespace headroom
#endif
