// The table of families that are built: their classes and the functions that fill a ModelSpec. formats/model_families.h
// describes their layers.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "models/model_spec.h"

namespace headroom {

struct Family {
  std::string_view model_type;    // config.json's model_type
  std::string_view architecture;  // a supported class of `architectures`
  void (*fill)(const HfConfig& config, ModelSpec& spec);
};

// --- what families share ---
// Sizes, norm epsilon, windows, tied head, dropout of attention's probabilities (attention_dropout).
void fill_geometry(const HfConfig& config, ModelSpec& spec);
// The padding row of the embedding, which gets no gradient from look-ups, for families that transformers builds this
// way. Call after fill_geometry().
void fill_padding(const HfConfig& config, ModelSpec& spec);
// Rotary positions; of layers of type `layer_type` if layers differ. Call after fill_geometry().
void fill_rotary(const HfConfig& config, ModelSpec& spec, std::string_view layer_type = {});
// The activation, which must be one of the GELUs; refuses others.
void fill_gelu(const HfConfig& config, ModelSpec& spec);
// A dropout probability. If the key is absent or null: `fallback`, or without one the family's default.
double dropout_rate(const HfConfig& config, std::string_view key, std::optional<double> fallback = {});
void require_silu(const HfConfig& config);
// A classification head with the classes of id2label or num_labels.
void fill_classes(const HfConfig& config, ModelSpec& spec);
void fill_llama_names(ModelSpec& spec);
// Experts: their number, how many a token uses, and load balancing, from the keys that the families with experts share.
// The caller names the weights.
void fill_experts(const HfConfig& config, ModelSpec& spec);
// Geometry, rotary positions and names of the Llama layout, with SiLU.
void fill_llama_layout(const HfConfig& config, ModelSpec& spec);
// Adds biases to roles that have weights, named like these.
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
