// Families with experts: config.json, parameter counts, the names in checkpoints, refusals.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "models/decoder.h"

namespace headroom {
namespace {

ModelSpec spec_of(const Json& config) { return read_model_spec(HfConfig::parse(config.dump(), "c.json")); }

// Mixtral 8x7B and Qwen3-30B-A3B as published.
const Json kMixtral{{"model_type", "mixtral"},         {"vocab_size", 32000},     {"hidden_size", 4096},
                    {"intermediate_size", 14336},      {"num_hidden_layers", 32}, {"num_attention_heads", 32},
                    {"num_key_value_heads", 8},        {"num_local_experts", 8},  {"num_experts_per_tok", 2},
                    {"max_position_embeddings", 32768}};
const Json kQwen{{"model_type", "qwen3_moe"},       {"vocab_size", 151936},    {"hidden_size", 2048},
                 {"intermediate_size", 6144},       {"num_hidden_layers", 48}, {"num_attention_heads", 32},
                 {"num_key_value_heads", 4},        {"head_dim", 128},         {"num_experts", 128},
                 {"num_experts_per_tok", 8},        {"norm_topk_prob", true},  {"moe_intermediate_size", 768},
                 {"max_position_embeddings", 40960}};

Json changed(Json config, const Json& changes) {
  config.merge_patch(changes);
  return config;
}

// The message of the error with its remedy; empty when the config is accepted.
std::string refusal(const Json& config) {
  try {
    spec_of(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    return std::string(error.what()) + " | " + error.remedy();
  }
  return {};
}

TEST(ExpertSpec, PublishedModelsAreCountedToTheParameter) {
  EXPECT_EQ(parameter_count(spec_of(kMixtral)), 46702792704);
  EXPECT_EQ(parameter_count(spec_of(kQwen)), 30532122624);
}

TEST(ExpertSpec, VariantsOfTheTwoFamilies) {
  const ModelSpec mixtral = spec_of(kMixtral), qwen = spec_of(kQwen);
  EXPECT_TRUE(mixtral.experts.normalised && qwen.experts.normalised);
  EXPECT_FALSE(spec_of(changed(kQwen, {{"norm_topk_prob", nullptr}})).experts.normalised);
  EXPECT_EQ(mixtral.experts.intermediate, 14336);
  EXPECT_EQ(qwen.experts.intermediate, 768);
  EXPECT_EQ(mixtral.rope_theta, 1e6);
  EXPECT_EQ(mixtral.norm_epsilon, 1e-5);
  EXPECT_TRUE(qwen.has("q_norm") && !mixtral.has("q_norm"));
  EXPECT_EQ(mixtral.windows[0], 0);
  EXPECT_EQ(spec_of(changed(kMixtral, {{"sliding_window", 4096}})).windows[31], 4096);
  const Json window{{"sliding_window", 512}};
  EXPECT_EQ(spec_of(changed(kQwen, window)).windows[0], 0);
  EXPECT_EQ(spec_of(changed(changed(kQwen, window), {{"use_sliding_window", true}})).windows[0], 512);
  // The newer key for the number of experts.
  EXPECT_EQ(spec_of(changed(kQwen, {{"num_experts", nullptr}, {"num_local_experts", 16}})).experts.count, 16);
}

TEST(ExpertSpec, LayersWithoutExpertsHaveAnMlp) {
  const ModelSpec spec =
      spec_of(changed(kQwen, {{"num_hidden_layers", 6}, {"decoder_sparse_step", 2}, {"mlp_only_layers", {3, 77}}}));
  EXPECT_EQ(spec.experts.layers, (std::vector<bool>{false, true, false, false, false, true}));
  std::set<std::string> names;
  for (const WeightInfo& weight : model_weights(spec)) EXPECT_TRUE(names.insert(weight.name).second) << weight.name;
  EXPECT_TRUE(names.contains("model.layers.3.mlp.gate_proj.weight"));
  EXPECT_FALSE(names.contains("model.layers.3.mlp.gate.weight"));
  EXPECT_TRUE(names.contains("model.layers.5.mlp.gate.weight"));
  EXPECT_TRUE(names.contains("model.layers.5.mlp.experts.*.down_proj.weight"));
  EXPECT_FALSE(names.contains("model.layers.5.mlp.gate_proj.weight"));
}

TEST(ExpertSpec, ACheckpointHasOneTensorPerExpert) {
  const ModelSpec spec = spec_of(changed(kMixtral, {{"num_hidden_layers", 1}}));
  std::map<std::string, std::vector<int64_t>> stored;
  int64_t elements = 0;
  for (const WeightInfo& weight : checkpoint_weights(spec)) {
    stored[weight.name] = weight.shape;
    elements += element_count(weight.shape);
    EXPECT_EQ(weight.name.find('*'), std::string::npos) << weight.name;
  }
  EXPECT_EQ(elements, parameter_count(spec));
  const std::vector<int64_t> wide{14336, 4096}, narrow{4096, 14336}, router{8, 4096};
  EXPECT_EQ(stored.at("model.layers.0.block_sparse_moe.experts.0.w1.weight"), wide);
  EXPECT_EQ(stored.at("model.layers.0.block_sparse_moe.experts.7.w2.weight"), narrow);
  EXPECT_EQ(stored.at("model.layers.0.block_sparse_moe.experts.7.w3.weight"), wide);
  EXPECT_EQ(stored.at("model.layers.0.block_sparse_moe.gate.weight"), router);
  EXPECT_FALSE(stored.contains("model.layers.0.block_sparse_moe.experts.8.w1.weight"));
}

TEST(ExpertSpec, WhatIsNotBuiltOrContradictsIsRefusedByName) {
  EXPECT_EQ(refusal(kMixtral), "");
  for (const auto& [key, value] : std::map<std::string, Json>{{"router_jitter_noise", 0.1},
                                                              {"num_experts_per_tok", 9},
                                                              {"num_local_experts", 0},
                                                              {"hidden_act", "gelu"}}) {
    const std::string text = refusal(changed(kMixtral, {{key, value}}));
    EXPECT_NE(text.find(key), std::string::npos) << key << ": " << text;
  }
  for (const auto& [key, value] : std::map<std::string, Json>{{"mlp_only_layers", "all"},
                                                              {"mlp_only_layers", {1.5}},
                                                              {"decoder_sparse_step", 0},
                                                              {"moe_intermediate_size", -1},
                                                              {"num_experts", int64_t{1} << 40},
                                                              {"num_experts_per_tok", nullptr}}) {
    const std::string text = refusal(changed(kQwen, {{key, value}}));
    EXPECT_NE(text.find(key), std::string::npos) << key << ": " << text;
  }
}

TEST(ExpertSpec, LoadsAreBalancedWhereRouterLogitsAreAskedFor) {
  for (const auto& config : {kMixtral, kQwen}) {
    EXPECT_EQ(spec_of(changed(config, {{"router_aux_loss_coef", 0.5}})).experts.balance, 0);
    EXPECT_EQ(spec_of(changed(config, {{"output_router_logits", true}})).experts.balance, 0.001);
    const auto both = changed(config, {{"output_router_logits", true}, {"router_aux_loss_coef", 0.5}});
    EXPECT_EQ(spec_of(both).experts.balance, 0.5);
  }
  const auto negative = changed(kMixtral, {{"output_router_logits", true}, {"router_aux_loss_coef", -1}});
  EXPECT_NE(refusal(negative).find("router_aux_loss_coef"), std::string::npos);
}

// The nodes of one layer: the router reads the same normalised hidden states as the copies.
TEST(ExpertSpec, ALayerRoutesDispatchesAndCombines) {
  const Graph graph = build_training_forward(spec_of(changed(kMixtral, {{"num_hidden_layers", 1}})), 2, 16);
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[std::string(op_name(*node.op))];
  EXPECT_EQ(counts["moe_route"], 1);
  EXPECT_EQ(counts["moe_dispatch"], 1);
  EXPECT_EQ(counts["expert_linear"], 3);
  EXPECT_EQ(counts["moe_combine"], 1);
  EXPECT_EQ(counts["swiglu"], 1);
  EXPECT_EQ(counts["linear"], 5);  // q, k, v, o and the router
}

}  // namespace
}  // namespace headroom
