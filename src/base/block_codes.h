// Numbers as codes of a few bits. A block of them shares one scale: an element is its code's value times the scale.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace headroom {

// What a code means. nf4: quantiles of a normal distribution (Dettmers et al. 2023, "QLoRA", section 3 and appendix E).
// fp4: a sign, two exponent bits and one mantissa bit, in bitsandbytes' layout. Both range from -1 to 1, so the scale
// is the largest magnitude of the block. integer: a whole number, stored in two's complement with 8 bits and plus 8
// with 4 bits; the scale is the largest magnitude divided by 127 or 7.
enum class CodeTable : uint8_t { integer, nf4, fp4 };

// "integer", "nf4", "fp4", as in the IR's text form.
std::string_view code_table_name(CodeTable table);

// The values of the 4-bit codes.
const std::array<float, 16>& code_values(CodeTable table);

// Bytes of `count` codes; of two 4-bit codes in a byte, the first is in the higher half.
constexpr int64_t code_bytes(int64_t count, int bits) { return (count * bits + 7) / 8; }

// The scale of a block, from its largest magnitude. The scale of a whole block is the largest of its parts' scales.
float scale_of(CodeTable table, int bits, std::span<const float> values);

// Writes the nearest codes of elements of one block with this scale: code_bytes() bytes, from a byte boundary on. Ties
// go to the lower value for nf4 and fp4, to the even number for integer. With scale 0 every code is that of 0.
void encode(CodeTable table, int bits, float scale, std::span<const float> values, uint8_t* codes);

// Elements [first, first + count) of a block whose codes begin at `codes` and whose scale is `scale`. 8 bits: integer.
void decode(CodeTable table, int bits, const uint8_t* codes, float scale, int64_t first, int64_t count, float* values);

}  // namespace headroom
