// Attention of one query against a cache, in fp32 arithmetic: each chunk of keys gives a partial result.
#include <numbers>

#include "ops/attention/decode_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_TARGET_INCLUDE "ops/attention/cpu_simd_decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/attention/simd_tile-inl.h"

// One head against one chunk of keys.
#ifndef HEADROOM_ATTENTION_DECODE_ITEM_
#define HEADROOM_ATTENTION_DECODE_ITEM_
namespace headroom {
struct DecodeItem {
  const void* q;
  DType q_dtype;
  const void* k;  // the chunk's first row; rows are `stride` elements apart
  const void* v;
  DType kv_dtype;
  int64_t stride;
  int64_t count;
  int64_t dim;
  float scale;    // of the scores, base-2 domain; with a cap: before it, in units of the cap
  float softcap;  // base-2 domain, 0 = none
  float* o;
  float* maximum;
  float* sum;
};
}  // namespace headroom
#endif

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

HWY_INLINE Vector load_wide(const float* at) { return hn::LoadU(VectorTag(), at); }
HWY_INLINE Vector load_wide(const bfloat16* at) {
  const VectorTag d;
  const hn::Rebind<uint16_t, VectorTag> half;
  const hn::RebindToUnsigned<VectorTag> bits;
  const auto raw = hn::LoadU(half, reinterpret_cast<const uint16_t*>(at));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, raw)));
}

template <typename T>
HWY_INLINE float score_of(const float* q, const T* k, int64_t dim) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector even = hn::Zero(d), odd = even;
  int64_t i = 0;
  for (; i + 2 * lanes <= dim; i += 2 * lanes) {
    even = hn::MulAdd(hn::LoadU(d, q + i), load_wide(k + i), even);
    odd = hn::MulAdd(hn::LoadU(d, q + i + lanes), load_wide(k + i + lanes), odd);
  }
  for (; i + lanes <= dim; i += lanes) even = hn::MulAdd(hn::LoadU(d, q + i), load_wide(k + i), even);
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < dim; ++i) sum += q[i] * static_cast<float>(k[i]);
  return sum;
}

// scores -> exp2(score - maximum); returns the maximum and adds the sum. The buffer is padded to whole vectors.
HWY_INLINE float exponentiate(float* scores, int64_t count, float* sum) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill(scores + count, scores + round_up(count, lanes), -1e30f);
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

// o[0, kVectors vectors) = sum of p[i] v[i].
template <int kVectors, typename T>
HWY_INLINE void weigh(const float* p, const T* v, int64_t stride, int64_t count, float* o) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector even[kVectors], odd[kVectors];
  for (int j = 0; j < kVectors; ++j) even[j] = odd[j] = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 <= count; i += 2, v += 2 * stride) {
    const Vector first = hn::Set(d, p[i]), second = hn::Set(d, p[i + 1]);
    for (int j = 0; j < kVectors; ++j) {
      even[j] = hn::MulAdd(first, load_wide(v + j * lanes), even[j]);
      odd[j] = hn::MulAdd(second, load_wide(v + stride + j * lanes), odd[j]);
    }
  }
  if (i < count)
    for (int j = 0; j < kVectors; ++j) even[j] = hn::MulAdd(hn::Set(d, p[i]), load_wide(v + j * lanes), even[j]);
  for (int j = 0; j < kVectors; ++j) hn::StoreU(hn::Add(even[j], odd[j]), d, o + j * lanes);
}

template <typename T>
HWY_INLINE void decode_rows(const DecodeItem& item, const float* q, float* scores) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(VectorTag()));
  const T* k = static_cast<const T*>(item.k);
  const T* v = static_cast<const T*>(item.v);
  for (int64_t i = 0; i < item.count; ++i) scores[i] = score_of(q, k + i * item.stride, item.dim);
  if (item.softcap > 0) cap_scores(scores, item.count, 1.0f, item.softcap);
  *item.maximum = exponentiate(scores, item.count, item.sum);
  int64_t j = 0;
  for (; j + 4 * lanes <= item.dim; j += 4 * lanes) weigh<4>(scores, v + j, item.stride, item.count, item.o + j);
  for (; j + lanes <= item.dim; j += lanes) weigh<1>(scores, v + j, item.stride, item.count, item.o + j);
  for (; j < item.dim; ++j) {
    float sum = 0;
    for (int64_t i = 0; i < item.count; ++i) sum += scores[i] * static_cast<float>(v[i * item.stride + j]);
    item.o[j] = sum;
  }
}

void decode_item(const DecodeItem& item) {
  alignas(64) float q[kMaxFastDim];
  alignas(64) float scores[kDecodeChunk];
  widen(item.q, item.q_dtype, q, item.dim);
  for (int64_t i = 0; i < item.dim; ++i) q[i] *= item.scale;
  if (item.kv_dtype == DType::f32) return decode_rows<float>(item, q, scores);
  decode_rows<bfloat16>(item, q, scores);
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
  // The heads that share a chunk of the cache follow one another.
  parallel_for(shape.batch * shape.kv_heads * chunks * group, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t chunk = index / group % chunks, kv_row = index / group / chunks;
      const int64_t head_row = kv_row * group + index % group, partial = head_row * most + chunk;
      const int64_t key = begin_key + chunk * kDecodeChunk;
      const int64_t first = (kv_row / shape.kv_heads * shape.keys + key) * stride + kv_row % shape.kv_heads * shape.dim;
      HWY_DYNAMIC_DISPATCH(decode_item)
      ({static_cast<const std::byte*>(call.q) + q_at(head_row), call.q_dtype,
        static_cast<const std::byte*>(call.k) + first * kv_bytes,
        static_cast<const std::byte*>(call.v) + first * kv_bytes, call.kv_dtype, stride,
        std::min(kDecodeChunk, end_key - key), shape.dim, static_cast<float>(scale),
        static_cast<float>(cap * std::numbers::log2e), block.o + partial * width, block.maximum + partial,
        block.sum + partial});
    }
  });
  parallel_for(shape.batch * shape.heads, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) HWY_DYNAMIC_DISPATCH(decode_join)
    (block.o + row * most * width, block.maximum + row * most, block.sum + row * most, chunks, width, shape.dim,
     static_cast<std::byte*>(call.o) + q_at(row), call.q_dtype);
  });
}

}  // namespace headroom
#endif
