// f16 <-> f32 conversions, round to nearest even; NaN stays NaN, values that round beyond 65504 become infinite. The
// same bits as the processor's own conversions.
#pragma once

#include <bit>
#include <cstdint>

namespace headroom {

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) : bits(from(value)) {}
  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu,
                   fraction = bits & 0x3ffu;
    if (exponent == 31)
      return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13) | (fraction != 0 ? 0x400000u : 0u));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
  }
  static float16 of_bits(uint16_t bits) {
    float16 value;
    value.bits = bits;
    return value;
  }

 private:
  static uint16_t from(float value) {
    const uint32_t raw = std::bit_cast<uint32_t>(value), sign = (raw >> 16) & 0x8000u, size = raw & 0x7fffffffu;
    if (size > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((size >> 13) & 0x3ffu));
    if (size >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more
    if (size < 0x38800000u)  // below 2^-14: an ulp of 0.5f is the smallest subnormal, so the sum rounds to it
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u));
    return static_cast<uint16_t>(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13));
  }
};
static_assert(sizeof(float16) == 2);

}  // namespace headroom
