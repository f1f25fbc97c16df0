// Attention of one query against a cache, in fp32 arithmetic: each chunk of keys gives a partial result.
#include <numbers>
#include <type_traits>

#include "ops/attention/decode_simd.h"
#include "ops/paged_attention/int8_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_TARGET_INCLUDE "ops/attention/cpu_simd_decode.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/attention/simd_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

HWY_INLINE Vector load_wide(const float* at) { return hn::LoadU(VectorTag(), at); }
HWY_INLINE Vector load_wide(const float16* at) { return load(VectorTag(), at); }
HWY_INLINE Vector load_wide(const bfloat16* at) {
  const VectorTag d;
  const hn::Rebind<uint16_t, VectorTag> half;
  const hn::RebindToUnsigned<VectorTag> bits;
  const auto raw = hn::LoadU(half, reinterpret_cast<const uint16_t*>(at));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, raw)));
}

HWY_INLINE Vector load_wide(const int8_t* at) {
  const VectorTag d;
  const hn::Rebind<int8_t, VectorTag> bytes;
  const hn::RebindToSigned<VectorTag> whole;
  return hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(bytes, at)));
}

// The sums of the lanes of four vectors.
HWY_INLINE void store_sums(Vector a, Vector b, Vector c, Vector e, float* to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = hn::GetLane(a), to[1] = hn::GetLane(b), to[2] = hn::GetLane(c), to[3] = hn::GetLane(e);
#else
  const VectorTag d;
  const hn::Repartition<uint64_t, VectorTag> wide;
  const hn::FixedTag<float, 4> block;
  const Vector ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const Vector ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto left = hn::BitCast(wide, ab), right = hn::BitCast(wide, ce);
  alignas(64) float parts[HWY_LANES(float)];
  hn::Store(hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, left, right)),
                    hn::BitCast(d, hn::InterleaveUpper(wide, left, right))),
            d, parts);
  auto sum = hn::Load(block, parts);
  for (size_t i = 4; i < hn::Lanes(d); i += 4) sum = hn::Add(sum, hn::Load(block, parts + i));
  hn::StoreU(sum, block, to);
#endif
}

// The products of kHeads queries with `keys` (at most four) rows of k, which is read once.
template <int kHeads, typename T>
HWY_INLINE void score_keys(const float* q, const T* k, int64_t stride, int64_t keys, int64_t dim, float* scores) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* row[4];
  for (int j = 0; j < 4; ++j) row[j] = k + std::min<int64_t>(j, keys - 1) * stride;
  Vector sums[kHeads][4];
  for (int h = 0; h < kHeads; ++h)
    for (int j = 0; j < 4; ++j) sums[h][j] = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= dim; i += lanes)
    for (int j = 0; j < 4; ++j) {
      const Vector key = load_wide(row[j] + i);
      for (int h = 0; h < kHeads; ++h) sums[h][j] = hn::MulAdd(hn::LoadU(d, q + h * kMaxFastDim + i), key, sums[h][j]);
    }
  for (int h = 0; h < kHeads; ++h) {
    float four[4];
    store_sums(sums[h][0], sums[h][1], sums[h][2], sums[h][3], four);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t t = i; t < dim; ++t) four[j] += q[h * kMaxFastDim + t] * static_cast<float>(row[j][t]);
      scores[h * kDecodeChunk + j] = four[j];
    }
  }
}

// scores -> exp2(score - maximum); returns the maximum and adds the sum. The buffer is padded to whole vectors.
HWY_INLINE float exponentiate(float* scores, int64_t count, float* sum) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill(scores + count, scores + align_up(count, lanes), -1e30f);
  Vector largest = hn::LoadU(d, scores);
  for (int64_t i = lanes; i < count; i += lanes) largest = hn::Max(hn::LoadU(d, scores + i), largest);
  largest = hn::MaxOfLanes(d, largest);
  Vector total = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const Vector p = exp2_of(hn::Sub(hn::LoadU(d, scores + i), largest));
    total = hn::Add(total, p);
    hn::StoreU(p, d, scores + i);
  }
  *sum = hn::GetLane(hn::SumOfLanes(d, total));
  return hn::GetLane(largest);
}

// o[0, kVectors vectors) = sum of p[i] v[i] for kHeads heads; v is read once.
template <int kHeads, int kVectors, typename T>
HWY_INLINE void weigh(const float* p, const T* v, int64_t stride, int64_t count, float* o, int64_t o_stride) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[kHeads][kVectors];
  for (int h = 0; h < kHeads; ++h)
    for (int j = 0; j < kVectors; ++j) sums[h][j] = hn::Zero(d);
  for (int64_t i = 0; i < count; ++i, v += stride)
    for (int j = 0; j < kVectors; ++j) {
      const Vector value = load_wide(v + j * lanes);
      for (int h = 0; h < kHeads; ++h) sums[h][j] = hn::MulAdd(hn::Set(d, p[h * kDecodeChunk + i]), value, sums[h][j]);
    }
  for (int h = 0; h < kHeads; ++h)
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sums[h][j], d, o + h * o_stride + j * lanes);
}

// Rows lie a whole row of the cache apart, which no hardware prefetcher follows: four rows of k that are scored soon,
// and the rows of v that are weighed after the chunk's scores.
template <typename T>
HWY_INLINE void prefetch_rows(const DecodeItem& item, int64_t key) {
  constexpr int64_t kAhead = 16, kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t row = key; row < std::min(key + 4, item.count); ++row)
    for (int64_t i = 0; i < item.dim; i += kLine) {
      hwy::Prefetch(static_cast<const T*>(item.k) + (row + kAhead) * item.stride + i);
      hwy::Prefetch(static_cast<const T*>(item.v) + row * item.stride + i);
    }
}

// The scales that follow the codes of each key's head, as factors of its scores. Wider rows have none.
template <int kHeads, typename T>
HWY_INLINE void scale_scores(const DecodeItem& item, const T* rows, float* scores) {
  if constexpr (std::is_same_v<T, int8_t>)
    for (int64_t i = 0; i < item.count; ++i, rows += item.stride) {
      const float scale = head_scale(rows, item.dim);
      for (int h = 0; h < kHeads; ++h) scores[h * kDecodeChunk + i] *= scale;
    }
}

template <int kHeads, typename T>
HWY_INLINE void decode_rows(const DecodeItem& item, const float* q, float* scores) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(VectorTag()));
  const T* k = static_cast<const T*>(item.k);
  const T* v = static_cast<const T*>(item.v);
  for (int64_t i = 0; i < item.count; i += 4) {
    prefetch_rows<T>(item, i);
    score_keys<kHeads>(q, k + i * item.stride, item.stride, std::min<int64_t>(4, item.count - i), item.dim, scores + i);
  }
  scale_scores<kHeads>(item, k, scores);
  for (int h = 0; h < kHeads; ++h) {
    float* const row = scores + h * kDecodeChunk;
    if (item.softcap > 0) cap_scores(row, item.count, 1.0f, item.softcap);
    item.maximum[h * item.part_stride] = exponentiate(row, item.count, item.sum + h * item.part_stride);
  }
  scale_scores<kHeads>(item, v, scores);
  int64_t j = 0;
  for (; j + 4 * lanes <= item.dim; j += 4 * lanes)
    weigh<kHeads, 4>(scores, v + j, item.stride, item.count, item.o + j, item.o_stride);
  for (; j + lanes <= item.dim; j += lanes)
    weigh<kHeads, 1>(scores, v + j, item.stride, item.count, item.o + j, item.o_stride);
  for (; j < item.dim; ++j)
    for (int h = 0; h < kHeads; ++h) {
      float sum = 0;
      for (int64_t i = 0; i < item.count; ++i)
        sum += scores[h * kDecodeChunk + i] * static_cast<float>(v[i * item.stride + j]);
      item.o[h * item.o_stride + j] = sum;
    }
}

template <int kHeads>
HWY_INLINE void decode_heads(const DecodeItem& item) {
  alignas(64) float q[kHeads * kMaxFastDim];
  alignas(64) float scores[kHeads * kDecodeChunk] = {};
  for (int h = 0; h < kHeads; ++h) {
    float* const row = q + h * kMaxFastDim;
    widen(static_cast<const std::byte*>(item.q) + h * item.dim * dtype_bytes(item.q_dtype), item.q_dtype, row,
          item.dim);
    for (int64_t i = 0; i < item.dim; ++i) row[i] *= item.scale;
  }
  if (item.kv_dtype == DType::f32) return decode_rows<kHeads, float>(item, q, scores);
  if (item.kv_dtype == DType::f16) return decode_rows<kHeads, float16>(item, q, scores);
  if (item.kv_dtype == DType::i8) return decode_rows<kHeads, int8_t>(item, q, scores);
  decode_rows<kHeads, bfloat16>(item, q, scores);
}

void decode_item(const DecodeItem& item) {
  if (item.heads == 1) return decode_heads<1>(item);
  if (item.heads == 2) return decode_heads<2>(item);
  item.heads == 3 ? decode_heads<3>(item) : decode_heads<4>(item);
}

// Joins the partial results of one head, chunk after chunk, into `to`.
void decode_join(const float* o, const float* maximum, const float* sum, int64_t chunks, int64_t width, int64_t dim,
                 void* to, DType dtype) {
  alignas(64) float joined[kMaxFastDim] = {};
  const VectorTag d;
  float largest = maximum[0], total = 0;
  for (int64_t chunk = 1; chunk < chunks; ++chunk) largest = std::max(maximum[chunk], largest);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const float factor = hn::GetLane(exp2_of(hn::Set(d, maximum[chunk] - largest)));
    total += factor * sum[chunk];
    for (int64_t i = 0; i < dim; ++i) joined[i] += factor * o[chunk * width + i];
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
  const double cap = shape.softcap, scale = cap > 0 ? shape.scale / cap : shape.scale * std::numbers::log2e;
  const auto q_at = [&](int64_t head_row) { return head_row * shape.dim * q_bytes; };
  // All heads of a chunk follow one another: its rows are whole rows of the cache, read from memory once.
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
        std::min(kDecodeChunk, end_key - key), shape.dim, static_cast<float>(scale),
        static_cast<float>(cap * std::numbers::log2e), block.o + partial * width, most * width, block.maximum + partial,
        block.sum + partial, most});
    }
  });
  constexpr int64_t kPartials = 256;  // to be worth another thread
  parallel_for(shape.batch * shape.heads, std::max<int64_t>(4, kPartials / chunks),
               [&](int64_t begin, int64_t end, int) {
                 for (int64_t row = begin; row < end; ++row) HWY_DYNAMIC_DISPATCH(decode_join)
                 (block.o + row * most * width, block.maximum + row * most, block.sum + row * most, chunks, width,
                  shape.dim, static_cast<std::byte*>(call.o) + q_at(row), call.q_dtype);
               });
}

}  // namespace headroom
#endif
