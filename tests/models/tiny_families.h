// A tiny model of every supported family, with the config.json keys that the families read.
#pragma once

#include <cctype>
#include <string>
#include <vector>

#include "formats/json.h"
#include "models/family.h"

namespace headroom {

struct TinyModel {
  std::string name;  // for test names: letters and digits
  Json config;
};

inline bool is_encoder(const Family& family) {
  return family.model_type.ends_with("bert") || family.model_type == "roberta";
}

// The keys of all families together; each family reads its own.
inline Json tiny_config(const Family& family) {
  const bool gemma = family.model_type.starts_with("gemma"), neox = family.model_type == "gpt_neox";
  const bool gelu = is_encoder(family) || neox || family.model_type == "starcoder2";
  Json config{{"model_type", family.model_type},
              {"architectures", {family.architecture}},
              {"vocab_size", 97},
              {"hidden_size", 32},
              {"n_embd", 32},
              {"intermediate_size", 48},
              {"moe_intermediate_size", 24},
              {"num_hidden_layers", 2},
              {"n_layer", 2},
              {"num_attention_heads", 4},
              {"n_head", 4},
              {"max_position_embeddings", 40},
              {"n_positions", 40},
              {"hidden_act", gelu ? "gelu" : "silu"},
              {"activation_function", "gelu_new"},
              {"num_experts_per_tok", 2},
              {"num_labels", 3},
              {"pad_token_id", 1},
              {"rms_norm_eps", 1e-6},
              {"hidden_dropout_prob", 0.1},
              {"attention_dropout", 0.1},
              {"residual_dropout", 0.1},
              {"query_pre_attn_scalar", 16}};
  config[family.model_type == "mixtral" ? "num_local_experts" : "num_experts"] = 4;
  if (!is_encoder(family) && !neox) config["num_key_value_heads"] = 2;
  if (gemma) config["hidden_activation"] = "gelu_pytorch_tanh";
  if (neox) config["rotary_pct"] = 0.5;
  return config;
}

// Other keys that a config of the family may have.
inline Json tiny_variant(const Family& family) {
  Json changes{{"sliding_window", 8},           {"output_router_logits", true}, {"attention_bias", true},
               {"decoder_sparse_step", 2},      {"norm_topk_prob", true},       {"use_parallel_residual", false},
               {"final_logit_softcapping", 30}, {"attn_logit_softcapping", 50}, {"type_vocab_size", 1}};
  if (family.model_type != "gpt_neox") changes["tie_word_embeddings"] = true;
  if (family.model_type.starts_with("qwen3") || family.model_type.starts_with("gemma")) changes["head_dim"] = 10;
  return changes;
}

// Each family with tiny_config() and with tiny_variant(), except those without a head.
inline std::vector<TinyModel> tiny_families() {
  std::vector<TinyModel> models;
  for (const Family& family : families()) {
    if (family.architecture.ends_with("Model")) continue;
    models.push_back({std::string(family.architecture), tiny_config(family)});
    Json variant = tiny_config(family);
    variant.merge_patch(tiny_variant(family));
    models.push_back({std::string(family.architecture) + "Variant", std::move(variant)});
  }
  return models;
}

}  // namespace headroom
