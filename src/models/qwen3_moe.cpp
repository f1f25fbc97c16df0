// Qwen3-MoE (Yang et al. 2025): Qwen3's attention; in most layers many small experts, in the others Qwen3's MLP.
#include <algorithm>

#include "models/family.h"

namespace headroom {
namespace {

// Layers named by mlp_only_layers have no experts.
void exempt_layers(const HfConfig& config, ModelSpec& spec) {
  if (!config.has("mlp_only_layers")) return;
  const Json& exempt = config.raw["mlp_only_layers"];
  const bool whole = exempt.is_array() && std::all_of(exempt.begin(), exempt.end(),
                                                      [](const Json& layer) { return layer.is_number_integer(); });
  if (!whole) config.refuse("mlp_only_layers", "not a list of layers", "correct config.json");
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    if (std::find(exempt.begin(), exempt.end(), Json(layer)) != exempt.end())
      spec.experts.layers[static_cast<size_t>(layer)] = false;
}

}  // namespace

void fill_qwen3_moe(const HfConfig& config, ModelSpec& spec) {
  fill_qwen3(config, spec);
  fill_experts(config, spec);
  spec.experts.intermediate = config.integer("moe_intermediate_size", 1, 1 << 23, 768);
  spec.experts.normalised = config.boolean("norm_topk_prob", false);
  const int64_t step = config.integer("decoder_sparse_step", 1, 1 << 16, 1);
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    spec.experts.layers[static_cast<size_t>(layer)] = (layer + 1) % step == 0;
  exempt_layers(config, spec);
  spec.names["router"] = "model.layers.{}.mlp.gate.weight";
  spec.names["expert_gate"] = "model.layers.{}.mlp.experts.*.gate_proj.weight";
  spec.names["expert_up"] = "model.layers.{}.mlp.experts.*.up_proj.weight";
  spec.names["expert_down"] = "model.layers.{}.mlp.experts.*.down_proj.weight";
}

}  // namespace headroom
