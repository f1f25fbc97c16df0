// OLMo 2 (OLMo team 2025): Llama's layers with the norms after attention and MLP, before the sums with the residual
// stream, and RMS norms of queries and keys over all heads together.
#include "models/family.h"

namespace headroom {

void fill_olmo2(const HfConfig& config, ModelSpec& spec) {
  fill_llama_layout(config, spec);
  spec.windows.assign(spec.windows.size(), 0);
  spec.names.erase("attn_norm");
  spec.names.erase("ffn_norm");
  spec.names["q_norm"] = "model.layers.{}.self_attn.q_norm.weight";
  spec.names["k_norm"] = "model.layers.{}.self_attn.k_norm.weight";
  spec.names["attn_post_norm"] = "model.layers.{}.post_attention_layernorm.weight";
  spec.names["ffn_post_norm"] = "model.layers.{}.post_feedforward_layernorm.weight";
  if (config.boolean("attention_bias", false)) add_biases(spec, {"q", "k", "v", "o"});
}

}  // namespace headroom
