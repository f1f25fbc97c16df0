// Gemma 2 and the text models of Gemma 3 (Gemma team 2024, 2025): norms before and after attention and MLP, with
// weights stored minus one; embeddings scaled by the root of their width; gates with tanh GELU; windows in most layers.
#include <cmath>

#include "models/family.h"

namespace headroom {
namespace {

// A cap in config.json: null means none; if it is absent, `usual`.
double read_cap(const HfConfig& config, std::string_view key, double usual) {
  if (config.has(key)) return config.number(key, 1e-3, 1e6);
  return config.raw.contains(key) ? 0 : usual;
}

void fill_gemma(const HfConfig& config, ModelSpec& spec, double score_cap, double logit_cap) {
  fill_geometry(config, spec);
  fill_padding(config, spec);
  fill_rotary(config, spec, "full_attention");
  fill_gelu(config, spec);
  fill_llama_names(spec);
  spec.unit_norm = true;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden));
  spec.attention_scale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 1e-3, 1e6, 256));
  spec.score_cap = read_cap(config, "attn_logit_softcapping", score_cap);
  spec.logit_cap = read_cap(config, "final_logit_softcapping", logit_cap);
  spec.names["attn_post_norm"] = "model.layers.{}.post_attention_layernorm.weight";
  spec.names["ffn_norm"] = "model.layers.{}.pre_feedforward_layernorm.weight";
  spec.names["ffn_post_norm"] = "model.layers.{}.post_feedforward_layernorm.weight";
  if (config.boolean("attention_bias", false)) add_biases(spec, {"q", "k", "v", "o"});
  if (config.boolean("use_bidirectional_attention", false))
    config.refuse("use_bidirectional_attention", "which this version does not build", "use a causal checkpoint");
}

}  // namespace

void fill_gemma2(const HfConfig& config, ModelSpec& spec) { fill_gemma(config, spec, 50, 30); }

void fill_gemma3(const HfConfig& config, ModelSpec& spec) {
  fill_gemma(config, spec, 0, 0);
  spec.names["q_norm"] = "model.layers.{}.self_attn.q_norm.weight";
  spec.names["k_norm"] = "model.layers.{}.self_attn.k_norm.weight";
  spec.local_rope_theta = config.rope_theta("sliding_attention");
  if (config.rope_scaling("sliding_attention").type != RopeType::standard)
    config.refuse("rope_parameters", "but windowed layers are built without scaling only", "use another checkpoint");
}

}  // namespace headroom
