// Numbers as codes of a few bits, a block of them with one scale: an element is the value of its code times the scale
// of its block.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace headroom {

// What a code stands for. nf4: quantiles of a normal distribution (Dettmers et al. 2023, "QLoRA", section 3 and
// appendix E). fp4: a sign, two bits of exponent and one of mantissa, as bitsandbytes lays it out. Both go from -1 to
// 1, so that the scale is the largest magnitude of the block. integer: a whole number, of 8 bits in two's complement,
// of 4 bits with 8 added; the scale is the largest magnitude over 127, or over 7.
enum class CodeTable : uint8_t { integer, nf4, fp4 };

// "integer", "nf4", "fp4": the spelling of the IR's text form.
std::string_view code_table_name(CodeTable table);

// What codes of 4 bits stand for.
const std::array<float, 16>& code_values(CodeTable table);

// Bytes of so many codes: two of 4 bits to a byte, the first in the higher half.
constexpr int64_t code_bytes(int64_t count, int bits) { return (count * bits + 7) / 8; }

// The scale of a block: of its largest magnitude. Of parts of a block the largest one is the block's.
float scale_of(CodeTable table, int bits, std::span<const float> values);

// The nearest codes of values of one block whose scale is `scale`, into code_bytes() from a byte's begin. Of two values
// that are equally near, the lower one. Codes of zeros where the scale is 0.
void encode(CodeTable table, int bits, float scale, std::span<const float> values, uint8_t* codes);

// Elements first .. first + count of a block, whose codes begin at `codes` and whose scale is `scale`.
void decode(CodeTable table, int bits, const uint8_t* codes, float scale, int64_t first, int64_t count, float* values);

}  // namespace headroom
