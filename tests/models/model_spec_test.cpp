// Families and geometry: what config.json says, what is refused.
#include "models/model_spec.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "models/family.h"
#include "train/setup.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(HEADROOM_SOURCE_DIR) / "../shared/data/models";

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
  if (!fs::exists(kModels)) GTEST_SKIP() << "no ../shared";
  std::set<std::string> counted;
  for (const Published& row : published_models()) {
    if (!is_built(row)) continue;
    SCOPED_TRACE(row.name);
    const ModelFiles model = open_model(kModels / row.name / "config.json");
    EXPECT_EQ(std::to_string(parameter_count(model.spec)), row.parameters);
    EXPECT_EQ(model.spec.family, row.model_type);
    counted.insert(row.model_type);
  }
  EXPECT_EQ(counted, (std::set<std::string>{"llama", "qwen2", "mistral", "gpt2", "qwen3", "olmo2", "gemma2",
                                            "gemma3_text", "gpt_neox", "phi3"}));
}

TEST(ModelSpec, OtherFamiliesAreRefusedByName) {
  if (!fs::exists(kModels)) GTEST_SKIP() << "no ../shared";
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
  EXPECT_GE(refused, 12);
}

TEST(ModelSpec, QuantisedCheckpointIsCountedAndNotTrained) {
  if (!fs::exists(kModels)) GTEST_SKIP() << "no ../shared";
  const ModelFiles model = open_model(kModels / "llama-3.2-1b-bnb8");
  EXPECT_EQ(parameter_count(model.spec), 1235814400);
  EXPECT_FALSE(model.spec.quantization.empty());
  TrainOptions options;
  options.profile = "cpu-avx2";
  options.threads = 1;
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
