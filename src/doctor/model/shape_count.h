// Parameter counts, and the lookup in the table of published models.
#pragma once

#include <string>

#include "doctor/model/model_shape.h"
#include "formats/model_families.h"

namespace headroom::doctor {

// The facts of a model_type, or of Llama when it is unknown.
const FamilyFacts& facts_or_llama(const std::string& model_type);
// Copies the family's facts into the shape: norms, MLP, attention, activation, dropout.
void take_facts(ModelShape& shape, const FamilyFacts& facts);

// What differs between checkpoints of one family.
struct CountOptions {
  bool attention_bias = false, mlp_bias = false;
  int64_t token_types = 0;  // BERT
  bool pooler = false, mlm_head = false;
  int64_t query_rank = 0, key_value_rank = 0, rope_head_dim = 0, nope_head_dim = 0;  // multi-head latent attention
  bool shared_expert_gate = false, router_bias = false;
  int64_t embedding_width = 0;  // if it differs from hidden (OPT-350M), else 0
};

// Computes the parameter counts of `shape` from its geometry. Exact for the families of the table.
void count_parameters(ModelShape& shape, const FamilyFacts& facts, const CountOptions& options);

// A shape of the table by name; nullopt when the name is unknown.
std::optional<ModelShape> find_in_table(const std::string& name);

}  // namespace headroom::doctor
