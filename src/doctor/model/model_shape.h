// A model's shape as the memory model needs it: from a local config.json of any known or similar family, from the
// built-in table of popular models, or guessed from a parameter count alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom::doctor {

struct ModelShape {
  std::string name;
  std::string family;            // config.json's model_type
  double parameters = 0;         // all weights, tied heads counted once
  double active_parameters = 0;  // per token; less than `parameters` in a mixture of experts
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0;
  int64_t max_positions = 0;
  int64_t experts = 0, experts_per_token = 0, moe_intermediate = 0;
  int64_t sliding_window = 0;
  bool tied = false, gated_mlp = true, encoder_only = false, encoder_decoder = false;
  std::string stored_dtype;  // of the published checkpoint: bfloat16, float16, float32
  bool guessed = false;      // from a parameter count: estimates get a wider range and say so
};

// `name_or_path`: a directory with config.json, a config.json, or a name of the table (organisation optional, case and
// '-'/'_' ignored). nullopt when unknown. Throws Error(format) for a broken file.
std::optional<ModelShape> find_model_shape(const std::string& name_or_path);
// A typical dense decoder of this size. parameters > 0.
ModelShape guess_model_shape(double parameters);

}  // namespace headroom::doctor
