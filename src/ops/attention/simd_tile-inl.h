// Building blocks of the fp32 attention kernels, compiled once per Highway target: products of small matrices,
// transposition, conversion of rows, and the exponential.
#if defined(HEADROOM_ATTENTION_SIMD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_ATTENTION_SIMD_TILE_INL_H_
#undef HEADROOM_ATTENTION_SIMD_TILE_INL_H_
#else
#define HEADROOM_ATTENTION_SIMD_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "ir/dtype.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using VectorTag = hn::ScalableTag<float>;
using Vector = hn::Vec<VectorTag>;

// A matrix with element (i, j) at data[i * row + j * column].
struct Operand {
  const float* data;
  int64_t row;
  int64_t column;
};

// 2^x for x <= 127, relative error 2e-7; 0 below 2^-126. The polynomial interpolates (2^f - 1) / f on [-1/2, 1/2].
HWY_INLINE Vector exp2_of(Vector x) {
  const VectorTag d;
  const hn::RebindToUnsigned<VectorTag> bits;
  const Vector shift = hn::Set(d, 12582912.0f + 127.0f);  // the sum's low bits are the biased exponent
  // NaN stays NaN: given one, x86-64's maximum returns its right operand, arm64's the number.
  const Vector lowest = hn::Set(d, -127.0f);
  x = HWY_ARCH_X86 ? hn::Max(lowest, x) : hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  const Vector rounded = hn::Add(x, shift);
  const Vector f = hn::Sub(x, hn::Sub(rounded, shift));
  Vector p = hn::MulAdd(hn::Set(d, 1.338130253736246e-3f), f, hn::Set(d, 9.666368515388853e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550381013796419e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022349038020277e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931471805599452e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, rounded))));
}

// `count` products of queries and keys -> cap tanh(factor x). Processes whole vectors.
HWY_INLINE void cap_scores(float* scores, int64_t count, float factor, float cap) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const Vector t = tanh_of(d, hn::Mul(hn::LoadU(d, scores + i), hn::Set(d, factor)));
    hn::StoreU(hn::Mul(t, hn::Set(d, cap)), d, scores + i);
  }
}

// Two vectors of columns of kRows rows of c [+]= a b, kept in registers.
template <int kRows>
HWY_INLINE void product_block(const Operand& a, const float* HWY_RESTRICT b, int64_t b_row, float* HWY_RESTRICT c,
                              int64_t c_row, int64_t depth, bool add) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector left[kRows], right[kRows];
  HWY_UNROLL(12)
  for (int i = 0; i < kRows; ++i) {
    left[i] = add ? hn::LoadU(d, c + i * c_row) : hn::Zero(d);
    right[i] = add ? hn::LoadU(d, c + i * c_row + lanes) : hn::Zero(d);
  }
  const float* HWY_RESTRICT column = a.data;
  for (int64_t k = 0; k < depth; ++k, column += a.column, b += b_row) {
    const Vector b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
    HWY_UNROLL(12)
    for (int i = 0; i < kRows; ++i) {
      const Vector element = hn::Set(d, column[i * a.row]);
      left[i] = hn::MulAdd(element, b0, left[i]);
      right[i] = hn::MulAdd(element, b1, right[i]);
    }
  }
  HWY_UNROLL(12)
  for (int i = 0; i < kRows; ++i) {
    hn::StoreU(left[i], d, c + i * c_row);
    hn::StoreU(right[i], d, c + i * c_row + lanes);
  }
}

#if HWY_TARGET <= HWY_AVX3
constexpr int kBlockRows = 12;
#else
constexpr int kBlockRows = 6;
#endif

// c[rows x columns] [+]= a[rows x depth] b[depth x columns]. `columns` is a multiple of 32; b and c are contiguous
// along a row.
HWY_INLINE void multiply(const Operand& a, const float* b, int64_t b_row, float* c, int64_t c_row, int64_t rows,
                         int64_t columns, int64_t depth, bool add) {
  const int64_t step = 2 * static_cast<int64_t>(hn::Lanes(VectorTag()));
  for (int64_t j = 0; j < columns; j += step) {
    int64_t i = 0;
    const auto at = [&](int64_t row) { return Operand{a.data + row * a.row, a.row, a.column}; };
    for (; i + kBlockRows <= rows; i += kBlockRows)
      product_block<kBlockRows>(at(i), b + j, b_row, c + i * c_row + j, c_row, depth, add);
    for (; i + 4 <= rows; i += 4) product_block<4>(at(i), b + j, b_row, c + i * c_row + j, c_row, depth, add);
    for (; i < rows; ++i) product_block<1>(at(i), b + j, b_row, c + i * c_row + j, c_row, depth, add);
  }
}

// to[j][i] = from[i][j]; rows and columns are multiples of 4.
HWY_INLINE void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                          int64_t to_row) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
#else
  const hn::FixedTag<float, 4> d;
  for (int64_t i = 0; i < rows; i += 4) {
    for (int64_t j = 0; j < columns; j += 4) {
      const float* source = from + i * from_row + j;
      const auto r0 = hn::LoadU(d, source), r1 = hn::LoadU(d, source + from_row);
      const auto r2 = hn::LoadU(d, source + 2 * from_row), r3 = hn::LoadU(d, source + 3 * from_row);
      const auto low02 = hn::InterleaveLower(d, r0, r2), high02 = hn::InterleaveUpper(d, r0, r2);
      const auto low13 = hn::InterleaveLower(d, r1, r3), high13 = hn::InterleaveUpper(d, r1, r3);
      float* target = to + j * to_row + i;
      hn::StoreU(hn::InterleaveLower(d, low02, low13), d, target);
      hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, target + to_row);
      hn::StoreU(hn::InterleaveLower(d, high02, high13), d, target + 2 * to_row);
      hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, target + 3 * to_row);
    }
  }
#endif
}

// `count` elements of any dtype as fp32.
HWY_INLINE void widen(const void* from, DType dtype, float* HWY_RESTRICT to, int64_t count) {
  const VectorTag d;
  const hn::Rebind<uint16_t, VectorTag> half;
  const hn::RebindToUnsigned<VectorTag> bits;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (dtype == DType::f32) {
    const float* source = static_cast<const float*>(from);
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::LoadU(d, source + i), d, to + i);
    for (; i < count; ++i) to[i] = source[i];
    return;
  }
  if (dtype == DType::f16) {
    const float16* source = static_cast<const float16*>(from);
    for (; i + lanes <= count; i += lanes) hn::StoreU(load(d, source + i), d, to + i);
    for (; i < count; ++i) to[i] = static_cast<float>(source[i]);
    return;
  }
  const bfloat16* source = static_cast<const bfloat16*>(from);
  for (; i + lanes <= count; i += lanes) {
    const auto raw = hn::LoadU(half, reinterpret_cast<const uint16_t*>(source + i));
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, raw))), d, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(source[i]);
}

// Multiplies by `factor` and rounds to nearest even.
HWY_INLINE void narrow(const float* HWY_RESTRICT from, void* to, DType dtype, int64_t count, float factor) {
  const VectorTag d;
  const hn::Rebind<uint16_t, VectorTag> half;
  const hn::RebindToUnsigned<VectorTag> bits;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vector factors = hn::Set(d, factor);
  int64_t i = 0;
  if (dtype == DType::f32) {
    float* target = static_cast<float*>(to);
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, from + i), factors), d, target + i);
    for (; i < count; ++i) target[i] = from[i] * factor;
    return;
  }
  if (dtype == DType::f16) {
    float16* target = static_cast<float16*>(to);
    for (; i + lanes <= count; i += lanes) store(d, hn::Mul(hn::LoadU(d, from + i), factors), target + i);
    for (; i < count; ++i) target[i] = float16(from[i] * factor);
    return;
  }
  bfloat16* target = static_cast<bfloat16*>(to);
  for (; i + lanes <= count; i += lanes) {
    const Vector value = hn::Mul(hn::LoadU(d, from + i), factors);
    const auto raw = hn::BitCast(bits, value);
    const auto high = hn::ShiftRight<16>(raw);
    const auto odd = hn::And(high, hn::Set(bits, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(raw, hn::Add(odd, hn::Set(bits, 0x7fffu))));
    const auto not_number = hn::RebindMask(bits, hn::IsNaN(value));
    const auto chosen = hn::IfThenElse(not_number, hn::Or(high, hn::Set(bits, 0x40u)), rounded);
    hn::StoreU(hn::TruncateTo(half, chosen), half, reinterpret_cast<uint16_t*>(target + i));
  }
  for (; i < count; ++i) target[i] = bfloat16(from[i] * factor);
}

// `rows` rows of `dim` elements, `stride` apart, as fp32 rows of `width`, padded with zeros; then zero rows up to
// `all`.
HWY_INLINE void gather_rows(const void* from, DType dtype, int64_t stride, int64_t rows, int64_t all, int64_t dim,
                            float* to, int64_t width) {
  const std::byte* source = static_cast<const std::byte*>(from);
  for (int64_t i = 0; i < rows; ++i) {
    widen(source + i * stride * (dtype == DType::f32 ? 4 : 2), dtype, to + i * width, dim);
    std::fill(to + i * width + dim, to + (i + 1) * width, 0.0f);
  }
  std::fill(to + rows * width, to + all * width, 0.0f);
}

// Masks what a column does not see: column c sees rows [begin + c, end + c).
struct ColumnMask {
  int32_t begin;
  int32_t end;
  const int32_t* starts;  // of the columns' segments, or null
  // `hidden` in lanes whose column, `first + lane`, does not see `row`.
  HWY_INLINE Vector apply(Vector value, Vector hidden, int32_t row, int32_t first) const {
    const VectorTag d;
    const hn::RebindToSigned<VectorTag> whole;
    const auto column = hn::Iota(whole, first);
    const auto at = hn::Set(whole, row);
    const auto seen = hn::And(hn::Lt(at, hn::Add(column, hn::Set(whole, end))),
                              hn::Gt(at, hn::Add(column, hn::Set(whole, begin - 1))));
    if (!starts) return hn::IfThenElse(hn::RebindMask(d, seen), value, hidden);
    const auto started = hn::And(seen, hn::Lt(hn::LoadU(whole, starts + first), hn::Set(whole, row + 1)));
    return hn::IfThenElse(hn::RebindMask(d, started), value, hidden);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
