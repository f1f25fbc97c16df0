#include "formats/ggml_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/block_codes.h"
#include "base/float16.h"
#include "formats/json.h"

namespace headroom {
namespace {

template <typename T>
std::vector<T> of_hex(const std::string& text) {
  std::vector<std::byte> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

GgmlType type_named(const std::string& name) {
  for (uint32_t number = 0; number < 64; ++number)
    if (ggml_type(number) && ggml_type_name(number) == name) return *ggml_type(number);
  throw std::runtime_error(name);
}

// Written by the package gguf (make_ggml_blocks.py).
Json goldens(const char* kind) {
  return read_json(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/formats/ggml_blocks.json")[kind];
}

TEST(GgmlBlocks, QuantiseAsTheReference) {
  for (const Json& golden : goldens("quantised")) {
    const GgmlType type = type_named(golden["type"]);
    const auto values = of_hex<float>(golden["values"]);
    const auto wanted = of_hex<std::byte>(golden["blocks"]);
    std::vector<std::byte> blocks(wanted.size());
    encode_blocks(type, values, blocks.data());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(static_cast<int>(blocks[i]), static_cast<int>(wanted[i])) << ggml_type_name(type) << " byte " << i;
  }
}

TEST(GgmlBlocks, DecodeAsTheReference) {
  for (const Json& golden : goldens("decoded")) {
    const GgmlType type = type_named(golden["type"]);
    const auto blocks = of_hex<std::byte>(golden["blocks"]);
    const auto wanted = of_hex<float>(golden["values"]);
    const GgmlBlock block = ggml_block(type);
    ASSERT_EQ(blocks.size() / static_cast<size_t>(block.bytes) * static_cast<size_t>(block.elements), wanted.size());
    for (size_t i = 0; i < wanted.size(); i += static_cast<size_t>(block.elements)) {
      float values[kMostBlockElements];
      decode_block(type, blocks.data() + i / static_cast<size_t>(block.elements) * static_cast<size_t>(block.bytes),
                   values);
      for (size_t j = 0; j < static_cast<size_t>(block.elements); ++j)
        EXPECT_EQ(values[j], wanted[i + j]) << ggml_type_name(type) << " element " << i + j;
    }
  }
}

TEST(GgmlBlocks, CodesTimesScaleAreTheValues) {
  for (const Json& golden : goldens("decoded")) {
    const GgmlType type = type_named(golden["type"]);
    if (type != GgmlType::q8_0 && type != GgmlType::q4_0) continue;
    const auto block = of_hex<std::byte>(golden["blocks"]);
    const auto wanted = of_hex<float>(golden["values"]);
    uint8_t codes[32];
    float values[32];
    codes_of_block(type, block.data(), codes);
    decode(CodeTable::integer, type == GgmlType::q8_0 ? 8 : 4, codes, scale_of_block(type, block.data()), 0, 32,
           values);
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], wanted[i]) << ggml_type_name(type) << " element " << i;
  }
}

TEST(GgmlBlocks, NumbersThatAreNotQuantiseWithoutHarm) {
  for (const GgmlType type : {GgmlType::q8_0, GgmlType::q4_0}) {
    std::vector<float> values(32, 1.0f);
    values[3] = std::numeric_limits<float>::infinity();
    values[4] = std::numeric_limits<float>::quiet_NaN();
    std::byte block[34];
    encode_blocks(type, values, block);
  }
}

TEST(GgmlBlocks, EveryTypeHasAName) {
  EXPECT_EQ(ggml_type_name(13), "Q5_K");
  EXPECT_EQ(ggml_type_name(99), "type 99");
  EXPECT_FALSE(ggml_type(13));
  EXPECT_FALSE(ggml_type(4));
}

TEST(Float16, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<float>(float16::of_bits(static_cast<uint16_t>(bits)));
    const uint16_t back = float16(value).bits;
    if ((bits & 0x7fffu) > 0x7c00u)
      EXPECT_GT(back & 0x7fffu, 0x7c00u) << bits;
    else
      EXPECT_EQ(back, bits) << value;
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(float16(1.0f + 0x1p-11f).bits, 0x3c00);
  EXPECT_EQ(float16(1.0f + 3 * 0x1p-11f).bits, 0x3c02);
  EXPECT_EQ(float16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(float16(0x1p-25f).bits, 0);
  EXPECT_EQ(float16(0x1p-25f * 1.001f).bits, 1);
  EXPECT_EQ(float16(-0x1p-24f).bits, 0x8001);
}

}  // namespace
}  // namespace headroom
