// Requests for the planner's tests: small llama-like models, and published configs where ../shared lies.
#pragma once

#include <filesystem>
#include <string>

#include "formats/json.h"
#include "planner/search.h"
#include "runtime/executor.h"
#include "train/setup.h"

namespace headroom::test {

inline std::filesystem::path published(const std::string& name) {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared/data/models" / name / "config.json";
}

// Options that do not depend on the machine.
inline TrainOptions fixed_options(int64_t memory = int64_t{1} << 50) {
  TrainOptions options;
  options.memory = memory;
  options.threads = 2;
  options.profile = "cpu-avx2";
  return options;
}

inline ModelFiles small_model() {
  const Json config{{"model_type", "llama"},    {"vocab_size", 1009},
                    {"hidden_size", 96},        {"intermediate_size", 256},
                    {"num_hidden_layers", 6},   {"num_attention_heads", 6},
                    {"num_key_value_heads", 2}, {"max_position_embeddings", 128},
                    {"rms_norm_eps", 1e-5},     {"tie_word_embeddings", true}};
  ModelFiles model;
  model.config = HfConfig::parse(config.dump(), "small/config.json");
  model.spec = read_model_spec(model.config);
  return model;
}

// Facts and process bytes of no particular machine, so that figures are the same everywhere.
inline PlanRequest fixed_request(const TrainOptions& options, const ModelFiles& model) {
  PlanRequest request = training_request(options, model);
  if (request.facts.device == "cpu") request.facts = request.profile.facts;
  return request;
}

inline SearchResult plan(const TrainOptions& options, const ModelFiles& model) {
  return search_training_plan(fixed_request(options, model));
}

}  // namespace headroom::test
