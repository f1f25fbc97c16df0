// The table of families that are built: their classes and what fills a ModelSpec. What a family's layers have is in
// formats/model_families.h.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "models/model_spec.h"

namespace headroom {

struct Family {
  std::string_view model_type;    // config.json's model_type
  std::string_view architecture;  // a class of `architectures` that is built
  void (*fill)(const HfConfig& config, ModelSpec& spec);
};

// --- what families share ---
// Sizes, norm epsilon, windows, tied head, dropout of attention's probabilities (attention_dropout).
void fill_geometry(const HfConfig& config, ModelSpec& spec);
// The row of the embedding that look-ups give no gradient, for families that transformers builds so; after
// fill_geometry.
void fill_padding(const HfConfig& config, ModelSpec& spec);
// Rotary positions, of the layers of that type where layers differ; after fill_geometry.
void fill_rotary(const HfConfig& config, ModelSpec& spec, std::string_view layer_type = {});
// The activation as one of the GELUs; others are refused.
void fill_gelu(const HfConfig& config, ModelSpec& spec);
// A probability of dropout; absent or null: `fallback`, without one the family's own.
double dropout_rate(const HfConfig& config, std::string_view key, std::optional<double> fallback = {});
void require_silu(const HfConfig& config);
// A classification head with the classes of id2label or num_labels.
void fill_classes(const HfConfig& config, ModelSpec& spec);
void fill_llama_names(ModelSpec& spec);
// Number and choice of experts, from the keys that the families with experts share; names are the family's.
void fill_experts(const HfConfig& config, ModelSpec& spec);
// Geometry, rotary positions and names of the Llama layout, with SiLU.
void fill_llama_layout(const HfConfig& config, ModelSpec& spec);
// Biases of roles that have weights, named like these.
void add_biases(ModelSpec& spec, std::initializer_list<const char*> roles);

void fill_llama(const HfConfig& config, ModelSpec& spec);
void fill_qwen2(const HfConfig& config, ModelSpec& spec);
void fill_mistral(const HfConfig& config, ModelSpec& spec);
void fill_gpt2(const HfConfig& config, ModelSpec& spec);
void fill_qwen3(const HfConfig& config, ModelSpec& spec);
void fill_olmo2(const HfConfig& config, ModelSpec& spec);
void fill_gemma2(const HfConfig& config, ModelSpec& spec);
void fill_gemma3(const HfConfig& config, ModelSpec& spec);
void fill_gpt_neox(const HfConfig& config, ModelSpec& spec);
void fill_phi3(const HfConfig& config, ModelSpec& spec);
void fill_starcoder2(const HfConfig& config, ModelSpec& spec);
void fill_mixtral(const HfConfig& config, ModelSpec& spec);
void fill_qwen3_moe(const HfConfig& config, ModelSpec& spec);
void fill_bert(const HfConfig& config, ModelSpec& spec);
void fill_roberta(const HfConfig& config, ModelSpec& spec);

std::span<const Family> families();

}  // namespace headroom
