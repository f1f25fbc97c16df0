// A model's config.json as Hugging Face writes it, in both spellings: rope_theta / rope_scaling / torch_dtype, and the
// newer rope_parameters / dtype. Types and ranges are checked here; contradictions between values are checked by
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

enum class RopeType { standard, linear, llama3, longrope };

// Scaling of rotary positions. Fields that a type does not use keep their defaults.
struct RopeScaling {
  RopeType type = RopeType::standard;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 1.0;
  int64_t original_max_position = 0;
  std::vector<double> short_factors, long_factors;  // longrope: per pair of channels
  double amplitude = 1.0;                           // longrope: of cosines and sines

  // Whether a run of so many positions takes the long factors, for all its tokens.
  bool is_long(int64_t positions) const { return type == RopeType::longrope && positions > original_max_position; }
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
  int64_t kv_heads() const;           // absent: heads, or what the family's class has (Mistral: 8)
  int64_t head_dim() const;           // absent: hidden_size / heads, rounded down, or as the class has (Gemma: 256)
  int64_t intermediate_size() const;  // required; GPT-2's n_inner absent: 4 x n_embd
  int64_t max_positions() const;      // absent: as the class has (llama 2048), else required
  double norm_epsilon() const;     // rms_norm_eps, layer_norm_epsilon, layer_norm_eps or norm_epsilon; absent: 1e-6 or
                                   // as the class has (GPT-2 1e-5)
  std::string activation() const;  // hidden_activation, hidden_act or activation_function; absent: as the class has
  double initializer_range() const;  // absent: 0.02

  // --- attention ---
  // Length of the sliding window of a layer in positions (a query sees itself and window - 1 before it), or none for
  // full attention. Mistral: sliding_window (absent: 4096; null: none). Qwen2: only with use_sliding_window, in layers
  // from max_window_layers on, or as layer_types says; Qwen3 likewise; Qwen3-MoE: with use_sliding_window all. Gemma 2:
  // every layer but each second; Gemma 3: every layer but each sliding_window_pattern-th (absent: sixth). Others:
  // layer_types, else sliding_window.
  std::optional<int64_t> sliding_window(int64_t layer) const;

  // --- rotary positions ---
  // `layer_type`: "full_attention" or "sliding_attention" for families whose layers differ; without it a file whose
  // layers differ is refused.
  double rope_theta(
      std::string_view layer_type = {}) const;  // rope_theta or rotary_emb_base; absent: 10000, or as the class has
  // Types other than default, linear, llama3 and longrope are refused by name.
  RopeScaling rope_scaling(std::string_view layer_type = {}) const;
  // Share of a head's channels that rotates: partial_rotary_factor or rotary_pct; absent: 1 (GPT-NeoX: 0.25).
  double rotary_fraction() const;

  // --- the rest ---
  std::string dtype() const;  // "float32", "float16", "bfloat16" ...; absent: "float32"
  bool tied() const;          // absent: as the class has (llama false, GPT-2 true)
  std::optional<int64_t> bos_id() const;
  std::optional<int64_t> pad_id() const;  // may be negative; null: none; absent: as the class has (Gemma 0), else none
  std::vector<int64_t> eos_ids() const;   // an integer or a list
  bool quantized() const;                 // quantization_config is present
  std::string quantization_method() const;  // "bitsandbytes", "gptq" ...; "" when not quantized
  // "nf4", "nf4-dq" or "fp4" of bitsandbytes, "int8" (a scale per row) or "int4" (groups of 32, symmetric) of
  // compressed-tensors' packed form; "" for anything else.
  std::string weight_codes() const;
  // The same of embedding and head, of a GGUF whose layers are codes; a tied head is the embedding.
  std::string embedding_codes() const;
  std::string head_codes() const;

 private:
  void adopt();
  // The object of that key, or nullptr; if it has one per kind of layer, the one of `layer_type`.
  const Json* rope_object(std::string_view key, std::string_view layer_type) const;
  // Which layers have full attention among windowed ones: every how many; 0: no such rule.
  int64_t full_attention_period() const;
};

}  // namespace headroom
