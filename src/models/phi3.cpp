// Phi-3 and Phi-4-mini (Microsoft 2024, 2025): Llama's layers with fused qkv and fused gate and up, partial rotary
// embeddings and LongRoPE.
#include "models/family.h"

namespace headroom {

void fill_phi3(const HfConfig& config, ModelSpec& spec) {
  fill_llama_layout(config, spec);
  spec.dropout.residual = dropout_rate(config, "resid_pdrop");
  for (const char* role : {"q", "k", "v", "gate", "up"}) spec.names.erase(role);
  spec.names["qkv"] = "model.layers.{}.self_attn.qkv_proj.weight";
  spec.names["gate_up"] = "model.layers.{}.mlp.gate_up_proj.weight";
  for (int64_t& window : spec.windows)
    if (window >= spec.max_positions) window = 0;
}

}  // namespace headroom
