// Attention of one query over a cache, in fp32 arithmetic: each chunk of keys gives a partial result.
#include "ops/attention/decode_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_TARGET_INCLUDE "ops/attention/cpu_simd_decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/attention/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

// The products of kHeads queries with `keys` (at most four) rows of k, which are read once.
template <int kHeads, typename T>
HWY_INLINE void score_keys(const float* q, const T* k, int64_t stride, int64_t keys, int64_t dim, float* scores) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* row[4];
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) row[j] = k + std::min<int64_t>(j, keys - 1) * stride;
  Vector sums[kHeads][4];
  HWY_UNROLL(4)
  for (int h = 0; h < kHeads; ++h) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) sums[h][j] = hn::Zero(d);
  }
  int64_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const Vector key = load_wide(row[j] + i);
      HWY_UNROLL(4)
      for (int h = 0; h < kHeads; ++h) sums[h][j] = hn::MulAdd(hn::LoadU(d, q + h * kMaxFastDim + i), key, sums[h][j]);
    }
  }
  HWY_UNROLL(4)
  for (int h = 0; h < kHeads; ++h) {
    float four[4];
    store_sums(sums[h][0], sums[h][1], sums[h][2], sums[h][3], four);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t t = i; t < dim; ++t) four[j] += q[h * kMaxFastDim + t] * static_cast<float>(row[j][t]);
      scores[h * kDecodeChunk + j] = four[j];
    }
  }
}

template <int kHeads, typename T>
HWY_INLINE void decode_rows(const DecodeItem& item, const float* q, float* scores) {
  const T* k = static_cast<const T*>(item.k);
  for (int64_t i = 0; i < item.count; i += 4) {
    prefetch_rows<T>(item, i);
    score_keys<kHeads>(q, k + i * item.stride, item.stride, std::min<int64_t>(4, item.count - i), item.dim, scores + i);
  }
  scale_scores<T>(item, item.k, scores);
  HWY_UNROLL(4)
  for (int h = 0; h < kHeads; ++h) {
    float* const row = scores + h * kDecodeChunk;
    if (item.softcap > 0) cap_scores(row, item.count, 1.0f, item.softcap);
    item.maximum[h * item.part_stride] = exponentiate(row, item.count, item.sum + h * item.part_stride);
  }
  scale_scores<T>(item, item.v, scores);
  float* o[kHeads];
  for (int h = 0; h < kHeads; ++h) o[h] = item.o + h * item.o_stride;
  weigh_values<kHeads, T>(item, scores, o);
}

template <int kHeads>
HWY_INLINE void decode_heads(const DecodeItem& item) {
  alignas(64) float q[kHeads * kMaxFastDim];
  alignas(64) float scores[kHeads * kDecodeChunk] = {};
  scale_queries(item, q);
  with_keys(item.kv_dtype, [&](auto key) HWY_ATTR { decode_rows<kHeads, decltype(key)>(item, q, scores); });
}

// The item's heads from `first` on, `count` of them.
HWY_INLINE DecodeItem heads_from(DecodeItem item, int first, int count) {
  item.q = static_cast<const std::byte*>(item.q) + first * item.dim * dtype_bytes(item.q_dtype);
  item.o += first * item.o_stride;
  item.maximum += first * item.part_stride, item.sum += first * item.part_stride;
  item.heads = count;
  return item;
}

void decode_item(const DecodeItem& item) {
  if (item.heads == 1) return decode_heads<1>(item);
  if (item.heads == 2) return decode_heads<2>(item);
  if (item.heads == 3) return decode_heads<3>(item);
  if constexpr (kQueriesAtOnce == 4) return decode_heads<4>(item);
  decode_heads<2>(heads_from(item, 0, 2));
  decode_heads<2>(heads_from(item, 2, 2));
}

// joined += the sums of `count` chunks, each times its factor.
HWY_INLINE void add_chunks(const float* o, const float* factors, int64_t count, int64_t width, int64_t dim,
                           float* joined) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < dim; i += 2 * lanes) {  // rows are padded to at least two vectors
    Vector low = hn::LoadU(d, joined + i), high = hn::LoadU(d, joined + i + lanes);
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      const float* const of = o + chunk * width + i;
      const Vector factor = hn::Set(d, factors[chunk]);
      low = hn::MulAdd(factor, hn::LoadU(d, of), low);
      high = hn::MulAdd(factor, hn::LoadU(d, of + lanes), high);
    }
    hn::StoreU(low, d, joined + i), hn::StoreU(high, d, joined + i + lanes);
  }
}

// Joins the partial results of one head, in the order of chunks, into `to`.
void decode_join(const float* o, const float* maximum, const float* sum, int64_t chunks, int64_t width, int64_t dim,
                 void* to, DType dtype) {
  constexpr int64_t kPiece = 64;
  alignas(64) float joined[kMaxFastDim] = {}, factors[kPiece];
  const VectorTag d;
  float largest = maximum[0], total = 0;
  for (int64_t chunk = 1; chunk < chunks; ++chunk) largest = std::max(maximum[chunk], largest);
  for (int64_t chunk = 0; chunk < chunks; chunk += kPiece) {
    const int64_t count = std::min(kPiece, chunks - chunk);
    std::fill_n(std::copy_n(maximum + chunk, count, factors), kPiece - count, largest);
    for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d)))
      hn::Store(exp2_of(hn::Sub(hn::Load(d, factors + i), hn::Set(d, largest))), d, factors + i);
    for (int64_t i = 0; i < count; ++i) total += factors[i] * sum[chunk + i];
    add_chunks(o + chunk * width, factors, count, width, dim, joined);
  }
  narrow(joined, to, dtype, dim, 1.0f / total);
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(decode_item);
HWY_EXPORT(decode_join);

void attend_chunk(const DecodeItem& item) { HWY_DYNAMIC_DISPATCH(decode_item)(item); }

void join_chunks(const float* o, const float* maximum, const float* sum, int64_t chunks, int64_t width, int64_t dim,
                 void* to, DType dtype) {
  HWY_DYNAMIC_DISPATCH(decode_join)(o, maximum, sum, chunks, width, dim, to, dtype);
}

void run_decode(const ForwardCall& call) {
  const AttentionShape& shape = call.shape;
  const int64_t group = shape.group(), width = padded_dim(shape.dim), most = decode_chunks(shape);
  const int64_t begin_key = shape.keys_begin(call.first), end_key = shape.keys_end(call.first);
  const int64_t chunks = (end_key - begin_key + kDecodeChunk - 1) / kDecodeChunk;
  const int64_t q_bytes = dtype_bytes(call.q_dtype), kv_bytes = dtype_bytes(call.kv_dtype);
  const int64_t stride = shape.kv_heads * shape.dim;
  Carver carver(call.scratch);
  const DecodeBlock block = decode_block(carver, shape);
  const ScoreScale scores(shape.scale, shape.softcap);
  const auto q_at = [&](int64_t head_row) { return head_row * shape.dim * q_bytes; };
  // All heads of a chunk are consecutive, so whole rows of the cache are read from memory once.
  const int64_t parts = (group + kDecodeHeads - 1) / kDecodeHeads;  // of the heads that share a kv head
  parallel_for(shape.batch * shape.kv_heads * chunks * parts, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t part = index % parts, kv_head = index / parts % shape.kv_heads;
      const int64_t chunk = index / parts / shape.kv_heads % chunks, row = index / parts / shape.kv_heads / chunks;
      const int64_t kv_row = row * shape.kv_heads + kv_head;
      const int64_t head = part * kDecodeHeads, head_row = kv_row * group + head;
      const int64_t key = begin_key + chunk * kDecodeChunk, partial = head_row * most + chunk;
      const int64_t first = (row * shape.keys + key) * stride + kv_head * shape.dim;
      HWY_DYNAMIC_DISPATCH(decode_item)
      ({static_cast<int>(std::min<int64_t>(kDecodeHeads, group - head)),
        static_cast<const std::byte*>(call.q) + q_at(head_row), call.q_dtype,
        static_cast<const std::byte*>(call.k) + first * kv_bytes,
        static_cast<const std::byte*>(call.v) + first * kv_bytes, call.kv_dtype, stride,
        std::min(kDecodeChunk, end_key - key), shape.dim, scores.scale, scores.softcap, block.o + partial * width,
        most * width, block.maximum + partial, block.sum + partial, most});
    }
  });
  constexpr int64_t kPartials = 256;  // enough for another thread
  parallel_for(shape.batch * shape.heads, std::max<int64_t>(4, kPartials / chunks),
               [&](int64_t begin, int64_t end, int) {
                 for (int64_t row = begin; row < end; ++row) HWY_DYNAMIC_DISPATCH(decode_join)
                 (block.o + row * most * width, block.maximum + row * most, block.sum + row * most, chunks, width,
                  shape.dim, static_cast<std::byte*>(call.o) + q_at(row), call.q_dtype);
               });
}

}  // namespace headroom
#endif
