// A model's config.json as Hugging Face writes it, in both dialects: rope_theta / rope_scaling / torch_dtype, and the
// newer rope_parameters / dtype. Types and ranges are checked here; contradictions between values are judged by
// models/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"

namespace headroom {

enum class RopeType { standard, linear, llama3 };

// How rotary positions are stretched. Fields that a type does not use keep their defaults.
struct RopeScaling {
  RopeType type = RopeType::standard;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 1.0;
  int64_t original_max_position = 0;
};

// Every getter throws Error(format) naming the file, the key, the value, the allowed range and the remedy. A key whose
// value is null counts as absent. Absent keys take the default of the family's class in transformers where the comment
// says so. Const and thread-safe.
struct HfConfig {
  // Reads `path`, or `path`/config.json when it is a directory. Throws Error(usage) when missing.
  static HfConfig read(const std::filesystem::path& path);
  // Parses text; `source` names it in errors.
  static HfConfig parse(std::string_view text, const std::filesystem::path& source);

  std::string model_type;                  // "llama"; required
  std::vector<std::string> architectures;  // may be empty
  Json raw;                                // an object, all keys
  std::filesystem::path source;

  // --- any key ---
  // Present and not null.
  bool has(std::string_view key) const;
  // An integer in [least, most] (2.0 counts as 2). Without a fallback the key is required.
  int64_t integer(std::string_view key, int64_t least, int64_t most, std::optional<int64_t> fallback = {}) const;
  // A finite number in [least, most].
  double number(std::string_view key, double least, double most, std::optional<double> fallback = {}) const;
  bool boolean(std::string_view key, std::optional<bool> fallback = {}) const;
  std::string text(std::string_view key, std::optional<std::string> fallback = {}) const;
  // An error of this file about `key`: "FILE: KEY is VALUE, PROBLEM". For checks made elsewhere.
  [[noreturn]] void refuse(std::string_view key, std::string_view problem, std::string_view remedy) const;

  // --- geometry; GPT-2's names (n_embd, n_layer, n_head, n_inner, n_positions) are understood ---
  int64_t vocab_size() const;         // required, 1 .. 2^24
  int64_t hidden_size() const;        // required, 1 .. 2^20
  int64_t layers() const;             // required, 1 .. 2^16
  int64_t heads() const;              // required, 1 .. 2^16
  int64_t kv_heads() const;           // absent: heads (Mistral: 8, as its class has it)
  int64_t head_dim() const;           // absent: hidden_size / heads, rounded down
  int64_t intermediate_size() const;  // required; GPT-2's n_inner absent: 4 x n_embd
  int64_t max_positions() const;      // absent: llama 2048, qwen2 32768, mistral 131072, gpt2 1024, else required
  double norm_epsilon() const;        // rms_norm_eps, layer_norm_epsilon or layer_norm_eps; absent: 1e-6 (GPT-2 1e-5)
  std::string activation() const;     // hidden_act or activation_function; absent: silu (GPT-2 gelu_new)
  double initializer_range() const;   // absent: 0.02

  // --- attention ---
  // Length of the sliding window of a layer in positions (a query sees itself and window - 1 before it), or none for
  // full attention. Mistral: sliding_window (absent: 4096; null: none). Qwen2: only with use_sliding_window, in layers
  // from max_window_layers on, or as layer_types says. Others: layer_types, else sliding_window.
  std::optional<int64_t> sliding_window(int64_t layer) const;

  // --- rotary positions ---
  double rope_theta() const;         // absent: 10000
  RopeScaling rope_scaling() const;  // types other than default, linear and llama3 are refused by name

  // --- the rest ---
  std::string dtype() const;  // "float32", "float16", "bfloat16" ...; absent: "float32"
  bool tied() const;          // absent: false for llama, mistral, qwen2; true otherwise (GPT-2)
  std::optional<int64_t> bos_id() const;
  std::vector<int64_t> eos_ids() const;     // an integer or a list
  bool quantized() const;                   // quantization_config is present
  std::string quantization_method() const;  // "bitsandbytes", "gptq" ...; "" when not quantized

 private:
  void adopt();
  // The object of that key, or nullptr; refused when it differs by layer.
  const Json* rope_object(std::string_view key) const;
};

}  // namespace headroom
