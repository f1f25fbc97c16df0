#include "base/block_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace headroom {
namespace {

constexpr std::array<float, 16> kIntegers{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

constexpr std::array<float, 16> kNormalFloat{-1.0f,
                                             -0.6961928009986877f,
                                             -0.5250730514526367f,
                                             -0.39491748809814453f,
                                             -0.28444138169288635f,
                                             -0.18477343022823334f,
                                             -0.09105003625154495f,
                                             0.0f,
                                             0.07958029955625534f,
                                             0.16093020141124725f,
                                             0.24611230194568634f,
                                             0.33791524171829224f,
                                             0.44070982933044434f,
                                             0.5626170039176941f,
                                             0.7229568362236023f,
                                             1.0f};

constexpr std::array<float, 16> kFloat{0.0f, 1.0f / 192,  2.0f / 3,  1.0f,  1.0f / 3,  0.5f,  1.0f / 6,  0.25f,
                                       0.0f, -1.0f / 192, -2.0f / 3, -1.0f, -1.0f / 3, -0.5f, -1.0f / 6, -0.25f};

// A table in the order of its values.
struct Ladder {
  std::array<uint8_t, 16> code{};  // by rank
  std::array<float, 15> middle{};  // midpoint of a rank and the next one; larger values belong to the next
};

constexpr Ladder make_ladder(const std::array<float, 16>& values) {
  Ladder ladder;
  for (size_t i = 0; i < 16; ++i) {
    size_t rank = i;
    for (; rank > 0 && values[i] < values[ladder.code[rank - 1]]; --rank) ladder.code[rank] = ladder.code[rank - 1];
    ladder.code[rank] = static_cast<uint8_t>(i);
  }
  for (size_t i = 0; i < 15; ++i) ladder.middle[i] = (values[ladder.code[i]] + values[ladder.code[i + 1]]) / 2;
  return ladder;
}

constexpr Ladder kNormalLadder = make_ladder(kNormalFloat);
constexpr Ladder kFloatLadder = make_ladder(kFloat);

uint8_t nearest(const Ladder& ladder, float value) {
  size_t rank = 0;
  for (const float middle : ladder.middle) rank += value > middle ? 1 : 0;
  return ladder.code[rank];
}

constexpr int largest_integer(int bits) { return bits == 8 ? 127 : 7; }

// The nearest whole number within +-most, ties to even; 0 for NaN.
int whole(float value, int most) {
  if (!(std::fabs(value) <= static_cast<float>(most))) return value > 0 ? most : value < 0 ? -most : 0;
  return static_cast<int>(std::nearbyint(value));
}

// The same within +-127, as a byte in two's complement: adding 1.5 x 2^23 leaves it in the sum's lowest bits. No
// branch, so compilers vectorize it.
uint8_t whole_byte(float value) {
  const float low = value < -127 ? -127.0f : 0.0f;  // 0 for NaN
  const float within = value >= -127 ? std::min(value, 127.0f) : low;
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(within + 12582912.0f));
}

// Packs code(i) of each value, two to a byte.
template <typename Code>
void pack_halves(size_t count, const Code& code, uint8_t* codes) {
  for (size_t i = 0; i < count; i += 2)
    codes[i / 2] = static_cast<uint8_t>(code(i) << 4 | (i + 1 < count ? code(i + 1) : 0));
}

}  // namespace

std::string_view code_table_name(CodeTable table) {
  constexpr std::string_view kNames[] = {"integer", "nf4", "fp4"};
  return kNames[static_cast<size_t>(table)];
}

const std::array<float, 16>& code_values(CodeTable table) {
  return table == CodeTable::nf4 ? kNormalFloat : table == CodeTable::fp4 ? kFloat : kIntegers;
}

float scale_of(CodeTable table, int bits, std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  return table == CodeTable::integer ? most / static_cast<float>(largest_integer(bits)) : most;
}

void encode(CodeTable table, int bits, float scale, std::span<const float> values, uint8_t* codes) {
  if (table != CodeTable::integer) {
    const Ladder& ladder = table == CodeTable::nf4 ? kNormalLadder : kFloatLadder;
    const float inverse = scale > 0 ? 1 / scale : 0.0f;  // multiplies like bitsandbytes: it matters near ties
    return pack_halves(
        values.size(), [&](size_t i) { return nearest(ladder, values[i] * inverse); }, codes);
  }
  const auto scaled = [&](size_t i) { return scale > 0 ? values[i] / scale : 0.0f; };
  if (bits == 4)
    pack_halves(
        values.size(), [&](size_t i) { return whole(scaled(i), largest_integer(4)) + 8; }, codes);
  else
    for (size_t i = 0; i < values.size(); ++i) codes[i] = whole_byte(scaled(i));
}

void decode(CodeTable table, int bits, const uint8_t* codes, float scale, int64_t first, int64_t count, float* values) {
  if (bits == 8) {
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int8_t>(codes[first + i])) * scale;
    return;
  }
  std::array<float, 16> scaled = code_values(table);
  for (float& value : scaled) value *= scale;
  int64_t i = 0;
  if (first % 2 != 0 && count > 0) values[i++] = scaled[codes[first / 2] & 15];
  const uint8_t* pair = codes + (first + i) / 2;
  for (; i + 2 <= count; i += 2, ++pair) {
    values[i] = scaled[*pair >> 4];
    values[i + 1] = scaled[*pair & 15];
  }
  if (i < count) values[i] = scaled[*pair >> 4];
}

}  // namespace headroom
