// What the kernels for few queries over a cache share, compiled once per Highway target: a chunk's weights and the sum
// of its values, in the same order whether queries come alone or in tiles.
#if defined(HEADROOM_ATTENTION_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_ATTENTION_DECODE_INL_H_
#undef HEADROOM_ATTENTION_DECODE_INL_H_
#else
#define HEADROOM_ATTENTION_DECODE_INL_H_
#endif

#include <hwy/cache_control.h>

#include <type_traits>

#include "ops/attention/decode_simd.h"
#include "ops/attention/simd_tile-inl.h"
#include "ops/paged_attention/int8_heads.h"

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

// Sums the lanes of each of four vectors.
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

// scores -> exp2(score - maximum). Returns the maximum and stores the sum in `sum`. The buffer is padded to whole
// vectors.
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

// Queries whose sums stay in registers, four vectors for each.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kQueriesAtOnce = 4;
#else
constexpr int kQueriesAtOnce = 3;
#endif

// body(count, first) for `queries` queries, as many as possible at once; `count` is a std::integral_constant.
template <typename Body>
HWY_INLINE void in_groups(int64_t queries, const Body& body) {
  int64_t first = 0;
  for (; first + kQueriesAtOnce <= queries; first += kQueriesAtOnce)
    body(std::integral_constant<int, kQueriesAtOnce>(), first);
  if (queries - first == 3) return body(std::integral_constant<int, 3>(), first);
  if (queries - first == 2) return body(std::integral_constant<int, 2>(), first);
  if (queries - first == 1) body(std::integral_constant<int, 1>(), first);
}

// o[h][first, first + kVectors vectors) = sum of p[i] v[i] for kHeads queries; v is read once.
template <int kHeads, int kVectors, typename T>
HWY_INLINE void weigh(const float* p, const T* v, int64_t stride, int64_t count, float* const* o, int64_t first) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[kHeads][kVectors];
  v += first;
  HWY_UNROLL(4)
  for (int h = 0; h < kHeads; ++h) {
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) sums[h][j] = hn::Zero(d);
  }
  for (int64_t i = 0; i < count; ++i, v += stride) {
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) {
      const Vector value = load_wide(v + j * lanes);
      HWY_UNROLL(4)
      for (int h = 0; h < kHeads; ++h) sums[h][j] = hn::MulAdd(hn::Set(d, p[h * kDecodeChunk + i]), value, sums[h][j]);
    }
  }
  HWY_UNROLL(4)
  for (int h = 0; h < kHeads; ++h) {
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sums[h][j], d, o[h] + first + j * lanes);
  }
}

// Prefetches four rows of k that are scored soon, and the rows of v that are weighted after the chunk's scores. A
// head's rows are a whole row of the cache apart, which hardware prefetchers do not follow.
template <typename T>
HWY_INLINE void prefetch_rows(const DecodeItem& item, int64_t key) {
  constexpr int64_t kAhead = 16, kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t row = key; row < std::min(key + 4, item.count); ++row)
    for (int64_t i = 0; i < item.dim; i += kLine) {
      hwy::Prefetch(static_cast<const T*>(item.k) + (row + kAhead) * item.stride + i);
      hwy::Prefetch(static_cast<const T*>(item.v) + row * item.stride + i);
    }
}

// Multiplies the scores of each key's head by the scale stored after its codes. Only int8 rows have scales.
template <typename T>
HWY_INLINE void scale_scores(const DecodeItem& item, const void* of, float* scores) {
  if constexpr (std::is_same_v<T, int8_t>) {
    const auto* rows = static_cast<const int8_t*>(of);
    for (int64_t i = 0; i < item.count; ++i, rows += item.stride) {
      const float scale = head_scale(rows, item.dim);
      for (int h = 0; h < item.heads; ++h) scores[h * kDecodeChunk + i] *= scale;
    }
  }
}

// o[h] = sum of p[i] v[i] for kHeads queries, whose rows of p are kDecodeChunk floats apart.
template <int kHeads, typename T>
HWY_INLINE void weigh_values(const DecodeItem& item, const float* p, float* const* o) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(VectorTag()));
  const T* v = static_cast<const T*>(item.v);
  int64_t j = 0;
  for (; j + 4 * lanes <= item.dim; j += 4 * lanes) weigh<kHeads, 4>(p, v, item.stride, item.count, o, j);
  for (; j + lanes <= item.dim; j += lanes) weigh<kHeads, 1>(p, v, item.stride, item.count, o, j);
  for (; j < item.dim; ++j) {
    HWY_UNROLL(4)
    for (int h = 0; h < kHeads; ++h) {
      float sum = 0;
      for (int64_t i = 0; i < item.count; ++i)
        sum += p[h * kDecodeChunk + i] * static_cast<float>(v[i * item.stride + j]);
      o[h][j] = sum;
    }
  }
}

// Calls body with a value of the keys' element type.
template <typename Body>
HWY_INLINE void with_keys(DType dtype, const Body& body) {
  if (dtype == DType::f32) return body(float());
  if (dtype == DType::f16) return body(float16());
  if (dtype == DType::i8) return body(int8_t());
  body(bfloat16());
}

HWY_INLINE void scale_queries(const DecodeItem& item, float* to) {
  for (int h = 0; h < item.heads; ++h, to += kMaxFastDim) {
    widen(static_cast<const std::byte*>(item.q) + h * item.dim * dtype_bytes(item.q_dtype), item.q_dtype, to, item.dim);
    for (int64_t i = 0; i < item.dim; ++i) to[i] *= item.scale;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
