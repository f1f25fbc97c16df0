// Requests for the planner's tests: small llama-like models, and published configs.
#pragma once

#include <filesystem>
#include <string>

#include "../data_files/data_files.h"
#include "engine/training_request.h"
#include "formats/json.h"
#include "planner/search.h"
#include "runtime/executor.h"
#include "weights/model_files.h"

namespace headroom::test {

inline std::filesystem::path published(const std::string& name) { return data_file("models/" + name + "/config.json"); }

// Options that do not depend on the machine.
inline TrainOptions fixed_options(int64_t memory = int64_t{1} << 50) {
  TrainOptions options;
  options.machine.memory = memory;
  options.machine.threads = 2;
  options.machine.profile = "cpu-avx2";
  return options;
}

inline ModelFiles llama_model(const char* name, int64_t vocab, int64_t hidden, int64_t intermediate, int64_t heads,
                              int64_t kv_heads) {
  const Json config{{"model_type", "llama"},
                    {"vocab_size", vocab},
                    {"hidden_size", hidden},
                    {"intermediate_size", intermediate},
                    {"num_hidden_layers", 6},
                    {"num_attention_heads", heads},
                    {"num_key_value_heads", kv_heads},
                    {"max_position_embeddings", 128},
                    {"rms_norm_eps", 1e-5},
                    {"tie_word_embeddings", true}};
  ModelFiles model;
  model.config = HfConfig::parse(config.dump(), std::string(name) + "/config.json");
  model.spec = read_model_spec(model.config);
  return model;
}
inline ModelFiles small_model() { return llama_model("small", 1009, 96, 256, 6, 2); }
// Larger than the memory for copies to disk.
inline ModelFiles wide_model() { return llama_model("wide", 4000, 256, 1024, 4, 4); }

// Facts and process bytes of an invented machine, so that figures are the same everywhere.
inline PlanRequest fixed_request(const TrainOptions& options, const ModelFiles& model) {
  PlanRequest request = training_request(options, model);
  if (request.facts.device == "cpu") request.facts = request.profile.facts;
  return request;
}

constexpr int64_t kPlenty = int64_t{1} << 50;

// Two micro-batches per step, with a budget for the device and one for a lower tier.
inline PlanRequest tiered_request(Tier tier, int64_t memory, int64_t below, const ModelFiles& model) {
  TrainOptions options = fixed_options(memory);
  options.data.global_batch_size = 2;
  options.data.micro_batch_size = 1;
  if (tier == Tier::disk) options.machine.disk_directory = ".", options.machine.disk_memory = below;
  PlanRequest request = fixed_request(options, model);
  if (tier == Tier::host) request.host_budget_bytes = below;
  return request;
}

inline SearchResult plan(const TrainOptions& options, const ModelFiles& model) {
  return search_training_plan(fixed_request(options, model));
}

}  // namespace headroom::test
