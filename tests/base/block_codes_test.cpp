#include "base/block_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace headroom {
namespace {

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(0.7f * static_cast<float>(i)) * static_cast<float>(1 + i % 5);
  return values;
}

std::vector<float> there_and_back(CodeTable table, int bits, const std::vector<float>& values) {
  std::vector<uint8_t> codes(static_cast<size_t>(code_bytes(static_cast<int64_t>(values.size()), bits)));
  const float scale = scale_of(table, bits, values);
  encode(table, bits, scale, values, codes.data());
  std::vector<float> out(values.size());
  decode(table, bits, codes.data(), scale, 0, static_cast<int64_t>(values.size()), out.data());
  return out;
}

// The smallest distance from `value` to a value that a code represents.
float least_distance(CodeTable table, float scale, float value) {
  float least = INFINITY;
  for (const float known : code_values(table)) least = std::min(least, std::fabs(known * scale - value));
  return least;
}

TEST(BlockCodes, EachValueBecomesTheNearest) {
  for (const CodeTable table : {CodeTable::nf4, CodeTable::fp4, CodeTable::integer}) {
    const std::vector<float> values = ramp(64), out = there_and_back(table, 4, values);
    const float scale = scale_of(table, 4, values);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(std::fabs(out[i] - values[i]), least_distance(table, scale, values[i]), 1e-6f * scale) << i;
  }
}

TEST(BlockCodes, EightBitsRoundToWithinHalfAStep) {
  const std::vector<float> values = ramp(100), out = there_and_back(CodeTable::integer, 8, values);
  const float scale = scale_of(CodeTable::integer, 8, values);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_LE(std::fabs(out[i] - values[i]), 0.5001f * scale) << i;
}

// With the tables of bitsandbytes, the block's largest magnitude and zero are exact.
TEST(BlockCodes, TheLargestMagnitudeAndZeroAreExact) {
  for (const CodeTable table : {CodeTable::nf4, CodeTable::fp4}) {
    const std::vector<float> out = there_and_back(table, 4, {0.0f, -3.5f, 3.5f, 0.0f});
    EXPECT_EQ(out, (std::vector<float>{0.0f, -3.5f, 3.5f, 0.0f}));
  }
}

TEST(BlockCodes, ZerosStayZeros) {
  for (const CodeTable table : {CodeTable::nf4, CodeTable::fp4, CodeTable::integer})
    for (const float value : there_and_back(table, 4, std::vector<float>(7, 0.0f))) EXPECT_EQ(value, 0.0f);
  for (const float value : there_and_back(CodeTable::integer, 8, std::vector<float>(7, 0.0f))) EXPECT_EQ(value, 0.0f);
}

TEST(BlockCodes, TheFirstOfTwoLiesInTheHigherHalf) {
  uint8_t codes[2];
  encode(CodeTable::nf4, 4, 1.0f, std::vector<float>{-1.0f, 1.0f, 1.0f}, codes);
  EXPECT_EQ(codes[0], 0x0f);
  EXPECT_EQ(codes[1] >> 4, 15);
}

TEST(BlockCodes, AnyPartOfABlockIsDecodedAlike) {
  const std::vector<float> values = ramp(32);
  for (const int bits : {4, 8}) {
    std::vector<uint8_t> codes(32);
    const float scale = scale_of(CodeTable::integer, bits, values);
    encode(CodeTable::integer, bits, scale, values, codes.data());
    std::vector<float> all(32);
    decode(CodeTable::integer, bits, codes.data(), scale, 0, 32, all.data());
    for (int64_t first = 0; first < 32; ++first)
      for (int64_t count = 0; first + count <= 32; ++count) {
        std::vector<float> part(static_cast<size_t>(count) + 1, 9.0f);
        decode(CodeTable::integer, bits, codes.data(), scale, first, count, part.data());
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(part[static_cast<size_t>(i)], all[static_cast<size_t>(first + i)]);
        ASSERT_EQ(part.back(), 9.0f);
      }
  }
}

TEST(BlockCodes, WhatIsNotANumberHasACodeToo) {
  uint8_t codes[2];
  encode(CodeTable::integer, 8, 1.0f, std::vector<float>{NAN, INFINITY}, codes);
  EXPECT_EQ(codes[0], 0);
  EXPECT_EQ(codes[1], 127);
  encode(CodeTable::nf4, 4, INFINITY, std::vector<float>{NAN, -INFINITY}, codes);
}

}  // namespace
}  // namespace headroom
