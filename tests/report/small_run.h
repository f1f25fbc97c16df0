// A small run to plan, the same on every machine.
#pragma once

#include "engine/training_request.h"
#include "formats/json.h"
#include "planner/search.h"
#include "weights/model_files.h"

namespace headroom {

inline ModelFiles small_model(int layers) {
  const Json config{{"model_type", "llama"},       {"vocab_size", 1009},
                    {"hidden_size", 96},           {"intermediate_size", 256},
                    {"num_hidden_layers", layers}, {"num_attention_heads", 6},
                    {"num_key_value_heads", 2},    {"max_position_embeddings", 128},
                    {"rms_norm_eps", 1e-5},        {"tie_word_embeddings", true}};
  ModelFiles model;
  model.config = HfConfig::parse(config.dump(), "small/config.json");
  model.spec = read_model_spec(model.config);
  return model;
}

inline TrainOptions small_options(int64_t memory) {
  TrainOptions options;
  options.machine.memory = memory;
  options.machine.threads = 2;
  options.machine.profile = "cpu-avx2";
  return options;
}

}  // namespace headroom
