// GPT-2 (Radford et al. 2019): learned positions, LayerNorm, fused qkv, matrices stored [in, out] (Conv1D).
#include "models/family.h"

namespace headroom {

void fill_gpt2(const HfConfig& config, ModelSpec& spec) {
  fill_geometry(config, spec);
  spec.windows.assign(spec.windows.size(), 0);
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.hidden / spec.heads;
  spec.layout = "in_out";
  fill_gelu(config, spec);
  spec.dropout.embedding = dropout_rate(config, "embd_pdrop");
  spec.dropout.attention = dropout_rate(config, "attn_pdrop");
  spec.dropout.residual = dropout_rate(config, "resid_pdrop");
  if (!config.boolean("scale_attn_weights", true) || config.boolean("scale_attn_by_inverse_layer_idx", false) ||
      config.boolean("add_cross_attention", false))
    config.refuse("model_type",
                  "with attention variants (scale_attn_weights, scale_attn_by_inverse_layer_idx, add_cross_attention) "
                  "that this version does not build",
                  "use a checkpoint with GPT-2's own attention");
  spec.names = {{"embed", "transformer.wte.weight"},
                {"positions", "transformer.wpe.weight"},
                {"attn_norm", "transformer.h.{}.ln_1.weight"},
                {"attn_norm_bias", "transformer.h.{}.ln_1.bias"},
                {"qkv", "transformer.h.{}.attn.c_attn.weight"},
                {"qkv_bias", "transformer.h.{}.attn.c_attn.bias"},
                {"o", "transformer.h.{}.attn.c_proj.weight"},
                {"o_bias", "transformer.h.{}.attn.c_proj.bias"},
                {"ffn_norm", "transformer.h.{}.ln_2.weight"},
                {"ffn_norm_bias", "transformer.h.{}.ln_2.bias"},
                {"up", "transformer.h.{}.mlp.c_fc.weight"},
                {"up_bias", "transformer.h.{}.mlp.c_fc.bias"},
                {"down", "transformer.h.{}.mlp.c_proj.weight"},
                {"down_bias", "transformer.h.{}.mlp.c_proj.bias"},
                {"final_norm", "transformer.ln_f.weight"},
                {"final_norm_bias", "transformer.ln_f.bias"},
                {"head", "lm_head.weight"}};
  spec.optional_prefixes = {"transformer."};
  spec.ignored_suffixes = {".attn.bias", ".attn.masked_bias"};
}

}  // namespace headroom
