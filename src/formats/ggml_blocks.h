// Elements as ggml stores them: in blocks, each with a scale and codes. The tensors of a GGUF consist of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom {

// The supported types, by their numbers in a file.
enum class GgmlType : uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q4_k = 12, q6_k = 14, bf16 = 30 };

// The type with this number in a file; nothing for an unsupported one.
std::optional<GgmlType> ggml_type(uint32_t number);
// "Q4_0"; for every number that ggml has assigned, supported here or not, else "type 99".
std::string ggml_type_name(uint32_t number);
inline std::string ggml_type_name(GgmlType type) { return ggml_type_name(static_cast<uint32_t>(type)); }

// A block: so many elements in so many bytes.
struct GgmlBlock {
  int64_t elements = 1;
  int64_t bytes = 1;
};
inline constexpr int64_t kMostBlockElements = 256;
GgmlBlock ggml_block(GgmlType type);

// The elements of one block.
void decode_block(GgmlType type, const std::byte* block, float* values);

// The bits of its codes: 8 of Q8_0, 4 of Q4_0; nothing for types that have no whole-number codes with a single scale.
std::optional<int> ggml_code_bits(GgmlType type);

// Q8_0 and Q4_0 as codes of block_codes.h (CodeTable::integer): the 32 codes of a block in the order of the elements,
// two of 4 bits to a byte, and its scale.
void codes_of_block(GgmlType type, const std::byte* block, uint8_t* codes);
float scale_of_block(GgmlType type, const std::byte* block);

// Whole blocks of F32, F16, BF16, Q8_0 or Q4_0, bit for bit like ggml's reference quantisation.
void encode_blocks(GgmlType type, std::span<const float> values, std::byte* blocks);

}  // namespace headroom
