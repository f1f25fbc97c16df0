// bf16 <-> f32 conversions, round to nearest even; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace headroom {

struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) : bits(from(value)) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

 private:
  static uint16_t from(float value) {
    const uint32_t raw = std::bit_cast<uint32_t>(value);
    if ((raw & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((raw >> 16) | 0x40u);
    return static_cast<uint16_t>((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
  }
};
static_assert(sizeof(bfloat16) == 2);

}  // namespace headroom
