// 32 codes at a time become bf16 in a register and are multiplied with the rows of x. With few rows the time is that of
// reading the codes, as long as decoding takes few instructions.
#include <bit>

#include "base/block_codes.h"
#include "base/error.h"
#include "ops/cpu/capabilities.h"
#include "ops/linear/coded_dot.h"
#include "ops/linear/dot_bf16.h"

namespace headroom {

#ifdef HEADROOM_HAS_AVX512
namespace {

constexpr int kSharedOuts = 4;  // columns of a tile of two rows or more

// The scale of element `i` of a row.
class RowScales {
 public:
  RowScales(const CodedMatrix& weight, int64_t ins)
      : scales_(weight.scales()), of_row_(ins / weight.storage().block), shift_(shift(weight.storage(), ins)) {}

  // The block of element i is i >> shift; -1: finding it takes a division.
  static int shift(const Storage& storage, int64_t ins) {
    if (storage.block == ins) return 63;
    const auto block = static_cast<uint64_t>(storage.block);
    return std::has_single_bit(block) ? std::countr_zero(block) : -1;
  }

  HEADROOM_AVX512_BF16 __m512 at(int64_t out, int64_t i) const {
    return _mm512_set1_ps(scales_[out * of_row_ + (i >> shift_)]);
  }

 private:
  const float* scales_;
  int64_t of_row_;
  int shift_;
};

// Rows of 4-bit codes: the 16 values of a block are rounded once, then looked up 32 at a time.
class NibbleRows {
 public:
  static constexpr int64_t kStepBytes = kDotStep / 2;

  HEADROOM_AVX512_BF16 NibbleRows(const CodedMatrix& weight, int64_t ins)
      : codes_(weight.codes()),
        row_bytes_(ins / 2),
        scales_(weight, ins),
        values_(_mm512_loadu_ps(code_values(weight.storage().codes).data())),
        // Word j of 128-bit lane k gets byte 4 k + j / 2, shifted down by 4 bits for even j.
        spread_(_mm512_add_epi8(_mm512_set4_epi32(0x80038003, 0x80028002, 0x80018001, 0x80008000),
                                _mm512_setr_epi64(0, 0, kFour, kFour, 2 * kFour, 2 * kFour, 3 * kFour, 3 * kFour))),
        shifts_(_mm512_set1_epi32(4)) {}

  HEADROOM_AVX512_BF16 __m512i load(int64_t out, int64_t i) const {
    const __m512 scaled = _mm512_mul_ps(values_, scales_.at(out, i));
    const auto* const codes = reinterpret_cast<const __m128i*>(codes_ + out * row_bytes_ + i / 2);
    const __m512i pairs = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(codes)), spread_);
    // Both halves of the table are the same, so bit 4 of a word does not matter.
    return _mm512_permutexvar_epi16(_mm512_srlv_epi16(pairs, shifts_), narrow_row(scaled, scaled));
  }

  const uint8_t* row(int64_t out) const { return codes_ + out * row_bytes_; }

 private:
  static constexpr int64_t kFour = 0x0004000400040004;  // offset of the byte read by the next lane

  const uint8_t* codes_;
  int64_t row_bytes_;
  RowScales scales_;
  __m512 values_;
  __m512i spread_, shifts_;
};

// Rows of 8-bit integers.
class ByteRows {
 public:
  static constexpr int64_t kStepBytes = kDotStep;

  ByteRows(const CodedMatrix& weight, int64_t ins) : codes_(weight.codes()), row_bytes_(ins), scales_(weight, ins) {}

  HEADROOM_AVX512_BF16 __m512i load(int64_t out, int64_t i) const {
    const __m512 scale = scales_.at(out, i);
    const auto* const codes = reinterpret_cast<const __m128i*>(codes_ + out * row_bytes_ + i);
    return narrow_row(_mm512_mul_ps(sixteen(codes), scale), _mm512_mul_ps(sixteen(codes + 1), scale));
  }

  const uint8_t* row(int64_t out) const { return codes_ + out * row_bytes_; }

 private:
  HEADROOM_AVX512_BF16 static __m512 sixteen(const __m128i* codes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(codes)));
  }

  const uint8_t* codes_;
  int64_t row_bytes_;
  RowScales scales_;
};

// Rows from `out` on of a weight.
template <typename Weight>
struct FromRow {
  Weight weight;
  int64_t out;

  HEADROOM_AVX512_BF16 __m512i load(int64_t next, int64_t i) const { return weight.load(out + next, i); }
};

template <typename R, int kOuts, int kCount, typename Weight>
HEADROOM_AVX512_BF16 void tile(const RowProduct& call, const Weight& weight, int64_t out, int64_t end) {
  constexpr int64_t kLines = (kOuts * Weight::kStepBytes + 63) / 64;
  Ahead ahead;
  if (out + 2 * kOuts <= end) ahead = {reinterpret_cast<const char*>(weight.row(out + kOuts)), kLines};
  __m512 total[kSumsOf<kOuts, kCount>];
  alignas(64) float sums[kSumsOf<kOuts, kCount>];
  add_steps<kOuts, kCount>(FromRow<Weight>{weight, out}, static_cast<const uint16_t*>(call.x), call.ins, ahead, total);
  store_all_sums<kOuts, kCount>(total, sums);
  finish<R>(call, 0, kCount, out, kOuts, sums, kOuts);
}

template <typename R, int kCount, typename Weight>
HEADROOM_AVX512_BF16 void columns_of(const RowProduct& call, const CodedMatrix& matrix, int64_t begin, int64_t end) {
  constexpr int kOuts = kCount == 1 ? kDotRowOuts : kSharedOuts;
  const Weight weight(matrix, call.ins);
  for (; begin + kOuts <= end; begin += kOuts) tile<R, kOuts, kCount>(call, weight, begin, end);
  for (; begin < end; ++begin) tile<R, 1, kCount>(call, weight, begin, end);
}

template <typename R, typename Weight>
CodedRange range_of(int64_t rows) {
  constexpr CodedRange kRanges[] = {columns_of<R, 1, Weight>, columns_of<R, 2, Weight>, columns_of<R, 3, Weight>,
                                    columns_of<R, 4, Weight>};
  static_assert(std::size(kRanges) == kDotRows);
  return kRanges[rows - 1];
}

template <typename R>
CodedRange range_of(int64_t rows, int bits) {
  return bits == 4 ? range_of<R, NibbleRows>(rows) : range_of<R, ByteRows>(rows);
}

}  // namespace

CodedRange bf16_coded_dot_range(const Storage& storage, DType y, int64_t rows, int64_t ins) {
  if (rows < 1 || rows > kDotRows || ins % kDotStep != 0) return nullptr;
  if (storage.block % kDotStep != 0 || RowScales::shift(storage, ins) < 0) return nullptr;
  const int bits = storage.payload_bits;
  return y == DType::f32 ? range_of<float>(rows, bits) : range_of<bfloat16>(rows, bits);
}

#else

CodedRange bf16_coded_dot_range(const Storage&, DType, int64_t, int64_t) { return nullptr; }

#endif

}  // namespace headroom
