// f16 <-> f32 conversions, round to nearest even; beyond 65504 becomes infinite, NaN stays NaN.
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
    if (exponent == 0)
      return std::bit_cast<float>(sign) + (sign ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
  }
  static float16 of_bits(uint16_t bits) {
    float16 value;
    value.bits = bits;
    return value;
  }

 private:
  static uint16_t from(float value) {
    const uint32_t raw = std::bit_cast<uint32_t>(value), magnitude = raw & 0x7fffffffu;
    const auto sign = static_cast<uint16_t>((raw >> 16) & 0x8000u);
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {  // subnormal: the sum's last bit counts 2^-24
      const float sum = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
};
static_assert(sizeof(float16) == 2);

}  // namespace headroom
