// Families and geometry: config.json, refusals.
#include "models/model_spec.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "engine/training_request.h"
#include "models/decoder.h"
#include "models/family.h"
#include "tiny_families.h"
#include "weights/model_files.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = test::data_file("models");

struct Published {
  std::string name, model_type, architecture, parameters;
};

std::vector<Published> published_models() {
  std::ifstream file(kModels / "PARAMS.tsv");
  std::vector<Published> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    Published row;
    std::getline(fields, row.name, '\t');
    std::getline(fields, row.model_type, '\t');
    std::getline(fields, row.architecture, '\t');
    std::getline(fields, row.parameters, '\t');
    rows.push_back(row);
  }
  return rows;
}

// The published count for the row's class; encoders list one per kind of head.
std::string expected_count(const Published& row) {
  if (!row.parameters.starts_with("{")) return row.parameters;
  const std::string key = row.architecture.ends_with("ForMaskedLM") ? "'masked_lm_head(tied)': " : "'with_pooler': ";
  const size_t begin = row.parameters.find(key) + key.size();
  return row.parameters.substr(begin, row.parameters.find_first_not_of("0123456789", begin) - begin);
}

bool is_built(const Published& row) {
  for (const Family& family : families())
    if (family.model_type == row.model_type && family.architecture == row.architecture) return true;
  return false;
}

// The message of the error that `text` causes, with its remedy; empty when it is accepted.
std::string refusal(const std::string& text) {
  try {
    read_model_spec(HfConfig::parse(text, "c.json"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    EXPECT_FALSE(error.remedy().empty());
    return std::string(error.what()) + " | " + error.remedy();
  }
  return {};
}

// A small llama config with some keys changed; null removes a key.
std::string llama(const Json& changes = Json::object()) {
  Json config{{"model_type", "llama"},
              {"architectures", {"LlamaForCausalLM"}},
              {"vocab_size", 100},
              {"hidden_size", 48},
              {"intermediate_size", 80},
              {"num_hidden_layers", 3},
              {"num_attention_heads", 6},
              {"num_key_value_heads", 2},
              {"max_position_embeddings", 64},
              {"rms_norm_eps", 1e-5},
              {"tie_word_embeddings", false}};
  config.merge_patch(changes);
  return config.dump();
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(ModelSpec, CountsOfPublishedConfigsAreTheirs) {
  std::set<std::string> counted;
  for (const Published& row : published_models()) {
    if (!is_built(row)) continue;
    SCOPED_TRACE(row.name);
    const ModelFiles model = open_model(kModels / row.name / "config.json");
    EXPECT_EQ(std::to_string(parameter_count(model.spec)), expected_count(row));
    EXPECT_EQ(model.spec.family, row.model_type);
    counted.insert(row.model_type);
  }
  EXPECT_EQ(counted, (std::set<std::string>{"llama", "qwen2", "mistral", "gpt2", "qwen3", "olmo2", "gemma2",
                                            "gemma3_text", "gpt_neox", "phi3", "bert", "roberta", "qwen3_moe"}));
}

TEST(ModelSpec, OtherFamiliesAreRefusedByName) {
  int refused = 0;
  for (const Published& row : published_models()) {
    if (is_built(row)) continue;
    SCOPED_TRACE(row.name);
    try {
      open_model(kModels / row.name);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::format);
      EXPECT_MENTIONS(std::string(error.what()), row.model_type);
      EXPECT_MENTIONS(std::string(error.what()), "config.json");
      EXPECT_FALSE(error.remedy().empty());
    }
    ++refused;
  }
  EXPECT_GE(refused, 9);
}

TEST(ModelSpec, QuantisedCheckpointIsCountedAndNotTrained) {
  const ModelFiles model = open_model(kModels / "llama-3.2-1b-bnb8");
  EXPECT_EQ(parameter_count(model.spec), 1235814400);
  EXPECT_FALSE(model.spec.quantization.empty());
  TrainOptions options;
  options.machine.profile = "cpu-avx2";
  options.machine.threads = 1;
  try {
    training_request(options, model);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_MENTIONS(std::string(error.what()), model.spec.quantization);
  }
}

TEST(ModelSpec, HubIdIsRefusedWithTheRemedy) {
  try {
    open_model("someone/some-model");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_MENTIONS(error.remedy(), "download");
  }
}

TEST(ModelSpec, CountsBySizes) {
  const ModelSpec spec = read_model_spec(HfConfig::parse(llama(), "c.json"));
  const int64_t layer = 48 * 48 * 2 + 16 * 48 * 2 + 3 * 48 * 80 + 2 * 48;
  EXPECT_EQ(parameter_count(spec), 2 * 100 * 48 + 3 * layer + 48);
  const ModelSpec tied = read_model_spec(HfConfig::parse(llama({{"tie_word_embeddings", true}}), "c.json"));
  EXPECT_EQ(parameter_count(tied), parameter_count(spec) - 100 * 48);
  const ModelSpec biased =
      read_model_spec(HfConfig::parse(llama({{"attention_bias", true}, {"mlp_bias", true}}), "c.json"));
  EXPECT_EQ(parameter_count(biased), parameter_count(spec) + 3 * (48 + 16 + 16 + 48 + 80 + 80 + 48));
}

// For all families except GPT-2 and GPT-NeoX, as built by transformers.
TEST(ModelSpec, PaddingRowsAreThoseOfTheFamilies) {
  for (const TinyModel& model : tiny_families()) {
    const ModelSpec spec = read_model_spec(HfConfig::parse(model.config.dump(), "c.json"));
    const bool without = spec.family == "gpt2" || spec.family == "gpt_neox";
    EXPECT_EQ(spec.padding_row, without ? -1 : 1) << model.name;
  }
}

TEST(ModelSpec, PaddingIdsCountFromTheEndAndOutsideTheTableMeanNone) {
  for (const auto& [id, row] : {std::pair<Json, int64_t>{99, 99}, {0, 0}, {-1, 99}, {-100, 0}, {-101, -1}, {100, -1}})
    EXPECT_EQ(read_model_spec(HfConfig::parse(llama({{"pad_token_id", id}}), "c.json")).padding_row, row) << id;
  EXPECT_EQ(read_model_spec(HfConfig::parse(llama(), "c.json")).padding_row, -1);
}

TEST(ModelSpec, WeightsAreNamedOnceAndNormsDoNotDecay) {
  const ModelSpec spec = read_model_spec(HfConfig::parse(llama(), "c.json"));
  std::set<std::string> names;
  for (const WeightInfo& weight : model_weights(spec)) {
    EXPECT_TRUE(names.insert(weight.name).second) << weight.name;
    EXPECT_EQ(weight.decays, weight.shape.size() >= 2) << weight.name;
  }
  EXPECT_EQ(names.size(), 3u + 3u * 9u);
  EXPECT_TRUE(names.contains("model.layers.2.mlp.down_proj.weight"));
  EXPECT_TRUE(names.contains("lm_head.weight"));
}

TEST(ModelSpec, ContradictionsAreRefused) {
  EXPECT_EQ(refusal(llama()), "");
  const std::string heads = refusal(llama({{"num_key_value_heads", 4}}));
  EXPECT_MENTIONS(heads, "num_key_value_heads");
  EXPECT_MENTIONS(heads, "6");
  EXPECT_MENTIONS(refusal(llama({{"num_key_value_heads", 12}})), "num_key_value_heads");
  EXPECT_MENTIONS(refusal(llama({{"hidden_size", 50}})), "hidden_size");
  EXPECT_MENTIONS(refusal(llama({{"head_dim", 7}})), "head_dim");
  EXPECT_MENTIONS(refusal(llama({{"hidden_size", 54}, {"num_key_value_heads", 6}})), "odd");
  EXPECT_MENTIONS(refusal(llama({{"hidden_act", "relu"}})), "relu");
  EXPECT_MENTIONS(refusal(llama({{"num_hidden_layers", 0}})), "num_hidden_layers");
  EXPECT_MENTIONS(refusal(llama({{"num_hidden_layers", "two"}})), "num_hidden_layers");
  EXPECT_MENTIONS(refusal(llama({{"vocab_size", nullptr}})), "vocab_size");
  EXPECT_MENTIONS(refusal(llama({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}})), "yarn");
}

TEST(ModelSpec, OtherClassesOfAFamilyAreRefusedByName) {
  const std::string text = refusal(llama({{"architectures", {"LlamaForSequenceClassification"}}}));
  EXPECT_MENTIONS(text, "LlamaForSequenceClassification");
  EXPECT_MENTIONS(text, "LlamaForCausalLM");
}

// What a published config contains besides sizes.
TEST(ModelSpec, VariantsOfPublishedConfigs) {
  const auto spec = [](const char* name) { return open_model(kModels / name).spec; };
  const ModelSpec gemma2 = spec("gemma2-9b");
  EXPECT_EQ(gemma2.windows[0], 4096);
  EXPECT_EQ(gemma2.windows[1], 0);
  EXPECT_EQ(gemma2.score_cap, 50);
  EXPECT_EQ(gemma2.logit_cap, 30);
  EXPECT_EQ(gemma2.attention_scale, 1.0 / 16);
  EXPECT_EQ(gemma2.activation, "gelu_tanh");
  EXPECT_TRUE(gemma2.unit_norm && gemma2.tied);
  const ModelSpec gemma3 = spec("gemma3-1b-it");
  EXPECT_EQ(gemma3.rope_theta, 1e6);
  EXPECT_EQ(gemma3.local_rope_theta, 1e4);
  EXPECT_EQ(std::vector<int64_t>(gemma3.windows.begin(), gemma3.windows.begin() + 6),
            (std::vector<int64_t>{512, 512, 512, 512, 512, 0}));
  EXPECT_EQ(gemma3.score_cap, 0);
  const ModelSpec phi3 = spec("phi-3.5-mini"), phi4 = spec("phi-4-mini");
  EXPECT_EQ(phi3.rotary_dim, 96);
  EXPECT_EQ(phi4.rotary_dim, 96);
  EXPECT_EQ(phi4.head_dim, 128);
  EXPECT_EQ(phi3.rope_scaling.type, RopeType::longrope);
  EXPECT_EQ(phi3.rope_scaling.long_factors.size(), 48u);
  EXPECT_EQ(phi3.rope_scaling.original_max_position, 4096);
  EXPECT_NEAR(phi3.rope_scaling.amplitude, 1.190238, 1e-6);  // sqrt(1 + ln 32 / ln 4096)
  EXPECT_EQ(phi3.windows[0], 0);
  const ModelSpec neox = spec("redpajama-3b-gptneox");
  EXPECT_FALSE(neox.parallel_residual);
  EXPECT_EQ(neox.rotary_dim, 80);
}

TEST(ModelSpec, EncodersAndTheirHeads) {
  Json config{{"model_type", "roberta"},
              {"architectures", {"RobertaForSequenceClassification"}},
              {"vocab_size", 100},
              {"hidden_size", 32},
              {"intermediate_size", 48},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"max_position_embeddings", 66},
              {"id2label", {{"0", "a"}, {"1", "b"}, {"2", "c"}}}};
  const ModelSpec classes = read_model_spec(HfConfig::parse(config.dump(), "c.json"));
  EXPECT_EQ(classes.objective, Objective::classification);
  EXPECT_EQ(classes.classes, 3);
  EXPECT_EQ(classes.max_positions, 64);  // the first two rows of the table are for padding
  EXPECT_FALSE(classes.causal || classes.tied);
  EXPECT_NO_THROW(build_training_forward(classes, 2, 64));
  EXPECT_THROW(build_generation(classes, 16, 4, DType::f32), Error);
  config["architectures"] = {"RobertaForMaskedLM"};
  const ModelSpec masked = read_model_spec(HfConfig::parse(config.dump(), "c.json"));
  EXPECT_EQ(parameter_count(masked) - parameter_count(classes), 2 * 32 + 100 - 3 * 32 - 3);
  config["architectures"] = {"RobertaModel"};
  const ModelSpec bare = read_model_spec(HfConfig::parse(config.dump(), "c.json"));
  EXPECT_THROW(build_training_forward(bare, 2, 64), Error);
  config["architectures"] = {"RobertaForTokenClassification"};
  EXPECT_MENTIONS(refusal(config.dump()), "RobertaForMaskedLM");
  config["architectures"] = {"RobertaForSequenceClassification"};
  config["id2label"] = {{"0", "score"}};
  EXPECT_MENTIONS(refusal(config.dump()), "two classes");
  config["id2label"] = nullptr;
  config["position_embedding_type"] = "relative_key";
  EXPECT_MENTIONS(refusal(config.dump()), "position_embedding_type");
}

TEST(ModelSpec, GemmasVariantsThatAreNotBuiltAreRefused) {
  const Json base{{"model_type", "gemma3_text"}, {"vocab_size", 100},      {"hidden_size", 32},
                  {"intermediate_size", 48},     {"num_hidden_layers", 2}, {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},    {"head_dim", 8}};
  EXPECT_EQ(refusal(base.dump()), "");
  const Json yarn{{"full_attention", {{"rope_type", "default"}}},
                  {"sliding_attention", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  for (const auto& [key, value] : std::map<std::string, Json>{{"use_bidirectional_attention", true},
                                                              {"hidden_activation", "relu"},
                                                              {"rope_parameters", yarn},
                                                              {"attn_logit_softcapping", -1}}) {
    Json changed = base;
    changed[key] = value;
    EXPECT_MENTIONS(refusal(changed.dump()), key);
  }
}

TEST(ModelSpec, LongropeFactorsFitTheHeads) {
  const Json base{{"model_type", "phi3"},     {"vocab_size", 100},           {"hidden_size", 32},
                  {"intermediate_size", 48},  {"num_hidden_layers", 2},      {"num_attention_heads", 4},
                  {"num_key_value_heads", 2}, {"partial_rotary_factor", 0.5}};
  const auto with = [&](Json factors) {
    Json changed = base;
    changed["rope_scaling"] = {{"type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}};
    return refusal(changed.dump());
  };
  EXPECT_EQ(with({1.0, 2.0}), "");
  EXPECT_MENTIONS(with({1.0, 2.0, 3.0}), "factors");
  EXPECT_MENTIONS(with({1.0, -2.0}), "short_factor");
  EXPECT_MENTIONS(with(Json::array()), "short_factor");
}

// The weights that a family names are those that the table of families says it has, from which doctor counts.
TEST(ModelSpec, WeightsAreThoseOfTheTableOfFamilies) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.architecture);
    const FamilyFacts* facts = find_family_facts(family.model_type);
    ASSERT_TRUE(facts);
    const ModelSpec spec = read_model_spec(HfConfig::parse(tiny_config(family).dump(), "c.json"));
    int norms = 0, norm_biases = 0;
    for (const char* norm :
         {"attn_norm", "attn_post_norm", "attn_sum_norm", "ffn_norm", "ffn_post_norm", "ffn_sum_norm"}) {
      norms += spec.has(norm);
      norm_biases += spec.has(std::string(norm) + "_bias");
    }
    EXPECT_EQ(norms, facts->norms_per_layer);
    EXPECT_EQ(norm_biases, facts->norm_bias ? norms : 0);
    EXPECT_EQ(spec.has("qkv_bias") || spec.has("q_bias"), facts->qkv_bias);
    EXPECT_EQ(spec.has("o_bias"), facts->output_bias);
    EXPECT_EQ(spec.has("down_bias"), facts->mlp_bias);
    EXPECT_EQ(spec.has("gate") || spec.has("gate_up") || spec.has("expert_gate"), facts->mlp == MlpKind::gated);
    EXPECT_EQ(spec.has("q_norm"), facts->query_key_norm != QueryKeyNorm::none);
    EXPECT_EQ(spec.has("embed_norm"), facts->embedding_norm);
    EXPECT_EQ(spec.has("final_norm"), facts->final_norm);
    EXPECT_EQ(spec.has("positions"), facts->positions == PositionKind::learned);
  }
}

TEST(ModelSpec, Gpt2VariantsThatAreNotBuiltAreRefused) {
  const Json base{{"model_type", "gpt2"}, {"vocab_size", 100}, {"n_embd", 32},
                  {"n_layer", 2},         {"n_head", 4},       {"n_positions", 64}};
  EXPECT_EQ(refusal(base.dump()), "");
  for (const auto& [key, value] : std::map<std::string, Json>{{"activation_function", "relu"},
                                                              {"scale_attn_weights", false},
                                                              {"scale_attn_by_inverse_layer_idx", true},
                                                              {"add_cross_attention", true}}) {
    Json changed = base;
    changed[key] = value;
    EXPECT_MENTIONS(refusal(changed.dump()), key);
  }
}

}  // namespace
}  // namespace headroom
