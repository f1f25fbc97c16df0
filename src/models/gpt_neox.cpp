// GPT-NeoX and Pythia (Black et al. 2022, Biderman et al. 2023): qkv fused head by head, partial rotary embeddings,
// LayerNorm, plain MLP, attention and MLP in parallel.
#include "models/family.h"

namespace headroom {

void fill_gpt_neox(const HfConfig& config, ModelSpec& spec) {
  fill_geometry(config, spec);
  fill_rotary(config, spec);
  fill_gelu(config, spec);
  spec.dropout.embedding = spec.dropout.residual = dropout_rate(config, "hidden_dropout");
  spec.windows.assign(spec.windows.size(), 0);
  spec.kv_heads = spec.heads;
  spec.qkv_by_head = true;
  spec.parallel_residual = config.boolean("use_parallel_residual", spec.parallel_residual);
  spec.names = {{"embed", "gpt_neox.embed_in.weight"},
                {"attn_norm", "gpt_neox.layers.{}.input_layernorm.weight"},
                {"qkv", "gpt_neox.layers.{}.attention.query_key_value.weight"},
                {"o", "gpt_neox.layers.{}.attention.dense.weight"},
                {"ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm.weight"},
                {"up", "gpt_neox.layers.{}.mlp.dense_h_to_4h.weight"},
                {"down", "gpt_neox.layers.{}.mlp.dense_4h_to_h.weight"},
                {"final_norm", "gpt_neox.final_layer_norm.weight"},
                {"head", "embed_out.weight"}};
  add_biases(spec, {"attn_norm", "ffn_norm", "up", "down", "final_norm"});
  if (config.boolean("attention_bias", true)) add_biases(spec, {"qkv", "o"});
  if (spec.architecture == "GPTNeoXForSequenceClassification") {
    fill_classes(config, spec);
    spec.names["head"] = "score.weight";
    spec.ignored_prefixes = {"embed_out.", "lm_head."};
  }
  spec.ignored_suffixes = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"};
}

}  // namespace headroom
