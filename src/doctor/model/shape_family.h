// What a model family has beside the numbers of its config.json: norms, biases, positions, heads.
#pragma once

#include <string>

#include "doctor/model/model_shape.h"

namespace headroom::doctor {

enum class Positions { rotary, learned, relative };
enum class QueryKeyNorm { none, per_head, full_width };

// The parts of a family that parameter counts and saved activations depend on, as its class in transformers has them.
struct FamilyTraits {
  const char* model_type;
  bool rms_norm = true;
  bool norm_bias = false;
  int norms_per_layer = 2;
  bool gated_mlp = true;
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  Positions positions = Positions::rotary;
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  bool embedding_norm = false, final_norm = true;
  bool tied = false;  // where config.json is silent
  bool parallel_residual = false;
  bool encoder_only = false, encoder_decoder = false;
  const char* activation = "silu";
  double dropout = 0;  // where config.json is silent
};

// The traits of a model_type; a Llama-like decoder for one that is not known. `known` tells which.
FamilyTraits family_traits(const std::string& model_type, bool* known = nullptr);

// Facts of one checkpoint that are no traits of its family.
struct CountOptions {
  bool attention_bias = false, mlp_bias = false;
  int64_t token_types = 0;  // BERT
  bool pooler = false, mlm_head = false;
  int64_t query_rank = 0, key_value_rank = 0, rope_head_dim = 0, nope_head_dim = 0;  // multi-head latent attention
  bool shared_expert_gate = false, router_bias = false;
  int64_t embedding_width = 0;  // where it differs from hidden (OPT-350M), else 0
};

// Fills the parameter counts of `shape` from its geometry. Exact for the families of the table.
void count_parameters(ModelShape& shape, const FamilyTraits& traits, const CountOptions& options);

// A shape of the built-in table by its name, nullopt when there is none.
std::optional<ModelShape> find_in_table(const std::string& name);

}  // namespace headroom::doctor
