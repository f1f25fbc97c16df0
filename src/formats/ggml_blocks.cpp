#include "formats/ggml_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"

namespace headroom {
namespace {

constexpr int64_t kBlock = 32, kSuperBlock = 256;

constexpr std::pair<uint32_t, std::string_view> kNames[] = {
    {0, "F32"},      {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},   {6, "Q5_0"},    {7, "Q5_1"},   {8, "Q8_0"},
    {9, "Q8_1"},     {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},  {13, "Q5_K"},   {14, "Q6_K"},  {15, "Q8_K"},
    {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},
    {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"},
    {30, "BF16"},    {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"}};

float half_at(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return static_cast<float>(float16::of_bits(bits));
}

void put_half(float value, std::byte* to) {
  const float16 half(value);
  std::memcpy(to, &half, sizeof(half));
}

int byte_at(const std::byte* at) { return static_cast<int>(*at); }

// Q4_K: d, dmin (f16), 12 bytes with eight pairs of a scale and a minimum of 6 bits, 128 bytes of codes. A value is
// d * scale * code - dmin * minimum; a run of 32 bytes holds 32 elements in its low halves and the next 32 in the high.
void decode_q4_k(const std::byte* block, float* values) {
  const float d = half_at(block), least = half_at(block + 2);
  const std::byte* const packed = block + 4;
  const std::byte* codes = block + 16;
  for (int part = 0; part < 8; ++part) {
    const int low = byte_at(packed + part % 4), high = byte_at(packed + 4 + part % 4),
              rest = byte_at(packed + 8 + part % 4);
    const int scale = part < 4 ? low & 63 : (rest & 15) | (low >> 6) << 4;
    const int minimum = part < 4 ? high & 63 : rest >> 4 | (high >> 6) << 4;
    const float step = d * static_cast<float>(scale), offset = least * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const int pair = byte_at(codes + part / 2 * 32 + i);
      values[part * 32 + i] = step * static_cast<float>(part % 2 == 0 ? pair & 15 : pair >> 4) - offset;
    }
  }
}

// Q6_K: 128 bytes with the lower 4 bits of the codes, 64 with the upper 2, 16 scales of 8 bits, d (f16). A value is
// d * scale * (code - 32). Each half of the block has 64 and 32 of these bytes: element i of its 128 takes the low bits
// at i mod 64, low or high half of the byte by i / 64, and the upper bits at i mod 32, by i / 32.
void decode_q6_k(const std::byte* block, float* values) {
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, in = i % 128;
    const int low = byte_at(block + half * 64 + in % 64) >> (in / 64 * 4) & 15;
    const int high = byte_at(block + 128 + half * 32 + in % 32) >> (in / 32 * 2) & 3;
    const auto scale = static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
    values[i] = d * scale * static_cast<float>((low | high << 4) - 32);
  }
}

// The nearest whole number within +-127, halves away from zero; 0 for NaN.
int rounded(float value) {
  if (std::isnan(value)) return 0;
  const float magnitude = std::min(std::fabs(value), 127.0f), whole = std::floor(magnitude);
  const int result = static_cast<int>(whole + std::floor(2 * (magnitude - whole)));
  return value < 0 ? -result : result;
}

void encode_q8_0(const float* values, std::byte* block) {
  float most = 0;
  for (int64_t i = 0; i < kBlock; ++i) most = std::max(most, std::fabs(values[i]));
  const float d = most / 127, inverse = d == 0 ? 0.0f : 1 / d;
  put_half(d, block);
  for (int64_t i = 0; i < kBlock; ++i) block[2 + i] = static_cast<std::byte>(rounded(values[i] * inverse));
}

void encode_q4_0(const float* values, std::byte* block) {
  float most = values[0];
  for (int64_t i = 1; i < kBlock; ++i)
    if (std::fabs(values[i]) > std::fabs(most)) most = values[i];
  const float d = most / -8, inverse = d == 0 ? 0.0f : 1 / d;
  put_half(d, block);
  const auto code = [&](int64_t i) {
    const float scaled = values[i] * inverse;
    return std::isnan(scaled) ? 8 : static_cast<int>(std::clamp(scaled + 8.5f, 0.0f, 15.0f));
  };
  for (int64_t i = 0; i < kBlock / 2; ++i) block[2 + i] = static_cast<std::byte>(code(i) | code(i + kBlock / 2) << 4);
}

}  // namespace

std::optional<GgmlType> ggml_type(uint32_t number) {
  for (const GgmlType type :
       {GgmlType::f32, GgmlType::f16, GgmlType::q4_0, GgmlType::q8_0, GgmlType::q4_k, GgmlType::q6_k, GgmlType::bf16})
    if (static_cast<uint32_t>(type) == number) return type;
  return std::nullopt;
}

std::string ggml_type_name(uint32_t number) {
  for (const auto& [known, name] : kNames)
    if (known == number) return std::string(name);
  return fmt::format("type {}", number);
}

GgmlBlock ggml_block(GgmlType type) {
  switch (type) {
    case GgmlType::f32:
      return {1, 4};
    case GgmlType::f16:
    case GgmlType::bf16:
      return {1, 2};
    case GgmlType::q4_0:
      return {kBlock, 2 + kBlock / 2};
    case GgmlType::q8_0:
      return {kBlock, 2 + kBlock};
    case GgmlType::q4_k:
      return {kSuperBlock, 144};
    case GgmlType::q6_k:
      return {kSuperBlock, 210};
  }
  throw_internal(__FILE__, __LINE__, "a type", ggml_type_name(type));
}

void decode_block(GgmlType type, const std::byte* block, float* values) {
  if (type == GgmlType::f32) {
    std::memcpy(values, block, sizeof(float));
  } else if (type == GgmlType::f16) {
    *values = half_at(block);
  } else if (type == GgmlType::bf16) {
    bfloat16 value;
    std::memcpy(&value, block, sizeof(value));
    *values = static_cast<float>(value);
  } else if (type == GgmlType::q4_k) {
    decode_q4_k(block, values);
  } else if (type == GgmlType::q6_k) {
    decode_q6_k(block, values);
  } else {
    const float d = half_at(block);
    for (int64_t i = 0; type == GgmlType::q8_0 && i < kBlock; ++i)
      values[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
    for (int64_t i = 0; type == GgmlType::q4_0 && i < kBlock; ++i)
      values[i] = static_cast<float>((byte_at(block + 2 + i % 16) >> (i / 16 * 4) & 15) - 8) * d;
  }
}

void codes_of_block(GgmlType type, const std::byte* block, uint8_t* codes) {
  if (type == GgmlType::q8_0) {
    std::memcpy(codes, block + 2, kBlock);
    return;
  }
  HR_CHECK(type == GgmlType::q4_0, "{} has no codes of its own", ggml_type_name(type));
  for (int i = 0; i < 16; ++i) {
    const int first = byte_at(block + 2 + 2 * i % 16), second = byte_at(block + 3 + 2 * i % 16);
    codes[i] = static_cast<uint8_t>(i < 8 ? (first & 15) << 4 | (second & 15) : (first & 240) | second >> 4);
  }
}

std::optional<int> ggml_code_bits(GgmlType type) {
  if (type == GgmlType::q8_0) return 8;
  return type == GgmlType::q4_0 ? std::optional<int>(4) : std::nullopt;
}

float scale_of_block(GgmlType type, const std::byte* block) {
  HR_CHECK(ggml_code_bits(type), "{} has no single scale", ggml_type_name(type));
  return half_at(block);
}

void encode_blocks(GgmlType type, std::span<const float> values, std::byte* blocks) {
  const GgmlBlock block = ggml_block(type);
  HR_CHECK(static_cast<int64_t>(values.size()) % block.elements == 0, "{} elements", values.size());
  for (size_t at = 0; at < values.size(); at += static_cast<size_t>(block.elements), blocks += block.bytes) {
    const float* const from = values.data() + at;
    if (type == GgmlType::f32) {
      std::memcpy(blocks, from, sizeof(float));
    } else if (type == GgmlType::f16) {
      put_half(*from, blocks);
    } else if (type == GgmlType::bf16) {
      const bfloat16 value(*from);
      std::memcpy(blocks, &value, sizeof(value));
    } else if (type == GgmlType::q8_0) {
      encode_q8_0(from, blocks);
    } else {
      HR_CHECK(type == GgmlType::q4_0, "{} is not written", ggml_type_name(type));
      encode_q4_0(from, blocks);
    }
  }
}

}  // namespace headroom
