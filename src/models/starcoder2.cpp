// StarCoder2 (Lozhkov et al. 2024): grouped queries and windows as in Mistral, LayerNorm, biases, plain MLP with GELU.
#include "models/family.h"

namespace headroom {

void fill_starcoder2(const HfConfig& config, ModelSpec& spec) {
  fill_geometry(config, spec);
  fill_padding(config, spec);
  fill_rotary(config, spec);
  fill_gelu(config, spec);
  spec.dropout.embedding = dropout_rate(config, "embedding_dropout");
  spec.dropout.residual = dropout_rate(config, "residual_dropout");
  fill_llama_names(spec);
  spec.names.erase("gate");
  spec.names["up"] = "model.layers.{}.mlp.c_fc.weight";
  spec.names["down"] = "model.layers.{}.mlp.c_proj.weight";
  add_biases(spec, {"attn_norm", "ffn_norm", "final_norm"});
  if (config.boolean("use_bias", true)) add_biases(spec, {"q", "k", "v", "o", "up", "down"});
}

}  // namespace headroom
