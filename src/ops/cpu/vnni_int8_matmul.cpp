// Products of 8-bit codes on AVX-512 VNNI: a 32 x 32 result, eight rows and all columns in registers at a time. Codes
// of A are unsigned bytes, raised by 128; sums start at what is to be taken off for that.
#include <cstring>

#include "ops/cpu/avx512_vnni.h"
#include "ops/cpu/byte_strips.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {
namespace {

using byte_strips::kLanes, byte_strips::kStep;

constexpr int64_t kRows = 8;                    // in registers
constexpr int64_t kHalfBytes = kLanes * kStep;  // of a part of a strip

// Sums of the rows from `a` on, which are kStep bytes apart, and of two halves of B.
HEADROOM_AVX512_VNNI_INLINE inline void multiply_rows(const std::byte* a, const std::byte* b, int64_t depth,
                                                      __m512i (&sums)[kRows][2]) {
  for (int64_t part = 0; part < depth; part += kStep, a += 2 * kHalfBytes, b += 2 * kHalfBytes)
    for (int64_t quad = 0; quad < kStep / 4; ++quad) {
      const __m512i left = _mm512_loadu_si512(b + quad * 64), right = _mm512_loadu_si512(b + kHalfBytes + quad * 64);
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) {
        int32_t codes;
        std::memcpy(&codes, a + row * kStep + quad * 4, sizeof(codes));
        const __m512i factor = _mm512_set1_epi32(codes);
        sums[row][0] = _mm512_dpbusd_epi32(sums[row][0], factor, left);
        sums[row][1] = _mm512_dpbusd_epi32(sums[row][1], factor, right);
      }
    }
}

HEADROOM_AVX512_VNNI void multiply(const Int8Tile& tile) {
  const std::byte* const excess = tile.b + tile.depth * 2 * kLanes;
  const __m512i zero = _mm512_setzero_si512();
  const __m512i left = _mm512_sub_epi32(zero, _mm512_loadu_si512(excess)),
                right = _mm512_sub_epi32(zero, _mm512_loadu_si512(excess + kLanes * 4));
  for (int64_t row = 0; row < tile.rows; row += kRows) {
    __m512i sums[kRows][2];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sums[i][0] = left, sums[i][1] = right;
    multiply_rows(tile.a + row / kLanes * kHalfBytes + row % kLanes * kStep, tile.b, tile.depth, sums);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      _mm512_store_si512(tile.sums + (row + i) * 2 * kLanes, sums[i][0]);
      _mm512_store_si512(tile.sums + (row + i) * 2 * kLanes + kLanes, sums[i][1]);
    }
  }
  byte_strips::finish(tile);
}

}  // namespace

MatmulOffer make_vnni_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (!facts.capabilities.has(kAvx512Bf16)) return {nullptr, "the machine has no AVX-512 VNNI"};
  return make_int8_product(
      spec, {kInt8Vnni, byte_strips::pack_raised_rows(), byte_strips::pack_quads_and_sums(), multiply}, facts, booked);
}

}  // namespace headroom

#else

namespace headroom {
MatmulOffer make_vnni_int8_matmul(const MatmulSpec&, const DeviceFacts&, int64_t) {
  return {nullptr, "the machine has no AVX-512 VNNI"};
}
}  // namespace headroom

#endif
