// Llama 2 and 3.x (Touvron et al. 2023; Dubey et al. 2024), and the layout that Qwen2 and Mistral share with it.
#include "models/family.h"

namespace headroom {

void add_biases(ModelSpec& spec, std::initializer_list<const char*> roles) {
  for (const char* role : roles) {
    std::string weight = spec.names.at(role);
    spec.names[std::string(role) + "_bias"] = weight.replace(weight.rfind("weight"), 6, "bias");
  }
}

void fill_llama_names(ModelSpec& spec) {
  spec.names = {{"embed", "model.embed_tokens.weight"},
                {"attn_norm", "model.layers.{}.input_layernorm.weight"},
                {"q", "model.layers.{}.self_attn.q_proj.weight"},
                {"k", "model.layers.{}.self_attn.k_proj.weight"},
                {"v", "model.layers.{}.self_attn.v_proj.weight"},
                {"o", "model.layers.{}.self_attn.o_proj.weight"},
                {"ffn_norm", "model.layers.{}.post_attention_layernorm.weight"},
                {"gate", "model.layers.{}.mlp.gate_proj.weight"},
                {"up", "model.layers.{}.mlp.up_proj.weight"},
                {"down", "model.layers.{}.mlp.down_proj.weight"},
                {"final_norm", "model.norm.weight"},
                {"head", "lm_head.weight"}};
  spec.ignored_suffixes = {".rotary_emb.inv_freq"};
}

void fill_llama_layout(const HfConfig& config, ModelSpec& spec) {
  fill_geometry(config, spec);
  fill_padding(config, spec);
  fill_rotary(config, spec);
  fill_llama_names(spec);
  require_silu(config);
}

void fill_llama(const HfConfig& config, ModelSpec& spec) {
  fill_llama_layout(config, spec);
  spec.windows.assign(spec.windows.size(), 0);
  if (config.boolean("attention_bias", false)) add_biases(spec, {"q", "k", "v", "o"});
  if (config.boolean("mlp_bias", false)) add_biases(spec, {"gate", "up", "down"});
}

// Qwen2 and Qwen2.5 (Yang et al. 2024): biases on q, k and v.
void fill_qwen2(const HfConfig& config, ModelSpec& spec) {
  fill_llama_layout(config, spec);
  add_biases(spec, {"q", "k", "v"});
}

// Mistral 7B (Jiang et al. 2023): sliding-window attention.
void fill_mistral(const HfConfig& config, ModelSpec& spec) { fill_llama_layout(config, spec); }

}  // namespace headroom
