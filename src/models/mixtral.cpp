// Mixtral (Jiang et al. 2024): Llama's layers with a router and gated experts instead of every MLP.
#include "base/error.h"
#include "models/family.h"

namespace headroom {

void fill_experts(const HfConfig& config, ModelSpec& spec) {
  const std::string_view count = config.has("num_experts") ? "num_experts" : "num_local_experts";
  spec.experts.count = config.integer(count, 1, 1 << 14);
  spec.experts.chosen = config.integer("num_experts_per_tok", 1, 1 << 14);
  if (spec.experts.chosen > spec.experts.count)
    config.refuse("num_experts_per_tok", fmt::format("of {} experts", spec.experts.count), "correct config.json");
  spec.experts.intermediate = spec.intermediate;
  spec.experts.layers.assign(static_cast<size_t>(spec.layers), true);
  if (config.boolean("output_router_logits", false))
    spec.experts.balance = config.number("router_aux_loss_coef", 0, 1e6, 0.001);
}

void fill_mixtral(const HfConfig& config, ModelSpec& spec) {
  fill_llama_layout(config, spec);
  fill_experts(config, spec);
  if (config.number("router_jitter_noise", 0, 1, 0) > 0)
    config.refuse("router_jitter_noise", "which this version does not add", "set it to 0");
  for (const char* role : {"gate", "up", "down"}) spec.names.erase(role);
  spec.names["router"] = "model.layers.{}.block_sparse_moe.gate.weight";
  spec.names["expert_gate"] = "model.layers.{}.block_sparse_moe.experts.*.w1.weight";
  spec.names["expert_up"] = "model.layers.{}.block_sparse_moe.experts.*.w3.weight";
  spec.names["expert_down"] = "model.layers.{}.block_sparse_moe.experts.*.w2.weight";
}

}  // namespace headroom
