// Converts weight names of a GGUF to Hugging Face's, and back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom {

// A family of models whose metadata and tensors are supported.
struct GgufArchitecture {
  std::string_view name;          // general.architecture, and the prefix of its keys
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // the class in transformers
  bool paired_rows;               // rows of q and k in the order of neighbouring pairs
};
std::span<const GgufArchitecture> gguf_architectures();
// By general.architecture, or null; the first of those that share it.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
// By the model_type of a config.json, or null.
const GgufArchitecture* gguf_architecture_of(std::string_view model_type);

// "model.layers.3.self_attn.q_proj.weight" for "blk.3.attn_q.weight"; empty for an unknown name.
std::string weight_of_gguf(std::string_view name);
// The reverse.
std::string gguf_of_weight(std::string_view name);

// A matrix of queries or keys, or its bias, which rotary positions rotate.
enum class RotaryRows { none, queries, keys };
RotaryRows rotary_rows(std::string_view weight);

// The position of a row of Hugging Face's order in the order of neighbouring pairs. A head's first half holds the first
// channel of each pair, its second half the others.
constexpr int64_t paired_row(int64_t row, int64_t head_rows) {
  const int64_t head = row / head_rows, in = row % head_rows, half = head_rows / 2;
  return head * head_rows + in % half * 2 + in / half;
}
// The reverse.
constexpr int64_t halved_row(int64_t row, int64_t head_rows) {
  const int64_t head = row / head_rows, in = row % head_rows, half = head_rows / 2;
  return head * head_rows + in / 2 + in % 2 * half;
}

}  // namespace headroom
