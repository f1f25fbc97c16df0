// Qwen3 (Yang et al. 2025): Llama's layout with RMS norms of each head's queries and keys before they rotate.
#include "models/family.h"

namespace headroom {

void fill_qwen3(const HfConfig& config, ModelSpec& spec) {
  fill_llama_layout(config, spec);
  spec.names["q_norm"] = "model.layers.{}.self_attn.q_norm.weight";
  spec.names["k_norm"] = "model.layers.{}.self_attn.k_norm.weight";
  if (config.boolean("attention_bias", false)) add_biases(spec, {"q", "k", "v", "o"});
}

}  // namespace headroom
