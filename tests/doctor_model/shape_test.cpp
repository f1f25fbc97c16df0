// Parameter counts and geometry against published figures.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "doctor/model/model_shape.h"

namespace headroom::doctor {
namespace {

double count(const std::string& name) {
  const auto shape = find_model_shape(name);
  return shape ? shape->parameters : -1;
}

TEST(Shape, CountsOfTheTableAreThePublishedOnes) {
  EXPECT_EQ(count("meta-llama/Llama-2-7b-hf"), 6738415616);
  EXPECT_EQ(count("meta-llama/Llama-2-70b-hf"), 68976648192);
  EXPECT_EQ(count("Meta-Llama-3.1-8B-Instruct"), 8030261248);
  EXPECT_EQ(count("llama_3.1_70b"), 70553706496);
  EXPECT_EQ(count("meta-llama/Llama-3.1-405B"), 405853388800);
  EXPECT_EQ(count("meta-llama/Llama-3.2-1B"), 1235814400);
  EXPECT_EQ(count("meta-llama/Llama-3.2-3B-Instruct"), 3212749824);
  EXPECT_EQ(count("mistralai/Mixtral-8x7B-v0.1"), 46702792704);
  EXPECT_EQ(count("Qwen/Qwen2.5-7B-Instruct"), 7615616512);
  EXPECT_EQ(count("Qwen/Qwen3-8B"), 8190735360);
  EXPECT_EQ(count("Qwen/Qwen3-30B-A3B"), 30532122624);
  EXPECT_EQ(count("google/gemma-2-9b-it"), 9241705984);
  EXPECT_EQ(count("gpt2"), 124439808);
  EXPECT_EQ(count("gpt2-xl"), 1557611200);
  EXPECT_EQ(count("EleutherAI/pythia-410m"), 405334016);
  EXPECT_EQ(count("EleutherAI/gpt-neox-20b"), 20554567680);
  EXPECT_EQ(count("facebook/opt-1.3b"), 1315758080);
  EXPECT_EQ(count("tiiuae/falcon-7b"), 6921720704);
  EXPECT_EQ(count("microsoft/phi-2"), 2779683840);
  EXPECT_EQ(count("deepseek-ai/DeepSeek-V2-Lite"), 15706484224);
  EXPECT_EQ(count("bert-base-uncased"), 109482240);
  EXPECT_EQ(count("bert-large-uncased"), 335141888);
  EXPECT_EQ(count("roberta-base"), 124645632);
  EXPECT_EQ(count("distilbert-base-uncased"), 66362880);
  EXPECT_EQ(count("t5-small"), 60506624);
  EXPECT_EQ(count("t5-3b"), 2851598336);
  EXPECT_EQ(count("bigcode/starcoder2-3b"), 3030371328);
}

TEST(Shape, NamesAreFoundInTheirManySpellings) {
  for (const char* name : {"unsloth/llama-3-8b-bnb-4bit", "Meta-Llama-3-8B", "NousResearch/Meta-Llama-3-8B-Instruct"}) {
    ASSERT_TRUE(find_model_shape(name)) << name;
    EXPECT_EQ(find_model_shape(name)->name, "llama-3-8b");
  }
  EXPECT_EQ(find_model_shape("TinyLlama/TinyLlama-1.1B-Chat-v1.0")->name, "tinyllama-1.1b");
  EXPECT_EQ(find_model_shape("mistralai/Mistral-7B-Instruct-v0.3")->vocab, 32768);
  EXPECT_FALSE(find_model_shape("nobody/no-such-model"));
  EXPECT_FALSE(find_model_shape(""));
}

// Counts given with the configs: computed_params, or the first figure of a set for encoders.
TEST(Shape, ConfigsCountAsStated) {
  std::ifstream table(test::data_file("models/PARAMS.tsv"));
  ASSERT_TRUE(table);
  int compared = 0;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    const size_t a = line.find('\t'), b = line.find('\t', a + 1), c = line.find('\t', b + 1),
                 d = line.find('\t', c + 1);
    const std::string name = line.substr(0, a), architecture = line.substr(b + 1, c - b - 1);
    std::string stated = line.substr(c + 1, d - c - 1);
    if (stated.empty()) continue;
    if (stated[0] == '{') {
      const std::string key = architecture == "BertForMaskedLM" ? "masked_lm_head(tied)': " : "with_pooler': ";
      stated = stated.substr(stated.find(key) + key.size());
    }
    const auto shape = find_model_shape(test::data_file("models/" + name).string());
    ASSERT_TRUE(shape) << name;
    EXPECT_EQ(shape->parameters, std::stod(stated)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 34);
}

TEST(Shape, ActiveParametersOfAMixture) {
  const auto shape = find_model_shape("mixtral-8x7b");
  EXPECT_EQ(shape->active_parameters, 46702792704.0 - 32.0 * 6 * 3 * 4096 * 14336);
}

TEST(Shape, GuessKeepsTheCount) {
  for (const double parameters : {1e6, 1.24e8, 1e9, 7e9, 13e9, 70e9, 4e11, 1e12}) {
    const ModelShape shape = guess_model_shape(parameters);
    EXPECT_EQ(shape.parameters, parameters);
    EXPECT_TRUE(shape.guessed);
    EXPECT_GT(shape.hidden, 0);
    EXPECT_GT(shape.intermediate, 0);
    EXPECT_LE(shape.linear_parameters, parameters);
  }
  const ModelShape seven = guess_model_shape(6.74e9);
  EXPECT_NEAR(static_cast<double>(seven.hidden), 4096, 700);
  EXPECT_NEAR(static_cast<double>(seven.layers), 32, 4);
}

TEST(Shape, BrokenConfigsAreRefused) {
  for (const char* text :
       {"", "[]", "{", "{}", R"({"model_type":"llama"})", R"({"hidden_size":-1,"num_hidden_layers":2})",
        R"({"hidden_size":1e300,"num_hidden_layers":2,"num_attention_heads":2})",
        R"({"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":0})"})
    EXPECT_THROW(parse_model_shape(text, "x"), Error) << text;
  const ModelShape odd = parse_model_shape(
      R"({"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":0,"vocab_size":[1]})",
      "x");
  EXPECT_GT(odd.parameters, 0);
}

TEST(Shape, NestedTextModelIsRead) {
  const ModelShape shape = parse_model_shape(
      R"({"model_type":"gemma3","text_config":{"hidden_size":2560,"num_hidden_layers":34,"num_attention_heads":8,
          "num_key_value_heads":4,"head_dim":256,"intermediate_size":10240,"vocab_size":262208}})",
      "x");
  EXPECT_EQ(shape.parameters, find_model_shape("gemma-3-4b")->parameters);
}

TEST(Table, VariantsHaveTheShapeOfTheirModel) {
  const auto name = [](const std::string& written) {
    const std::optional<ModelShape> shape = find_model_shape(written);
    return shape ? shape->name : std::string("none");
  };
  EXPECT_EQ(name("Qwen/Qwen3-4B-Instruct-2507"), "qwen3-4b");
  EXPECT_EQ(name("google/gemma-3-4b-it"), "gemma-3-4b");
  EXPECT_EQ(name("unsloth/gemma-3-4b-it-unsloth-bnb-4bit"), "gemma-3-4b");
  EXPECT_EQ(name("microsoft/Phi-4-reasoning-plus"), "phi-4");
  EXPECT_EQ(name("microsoft/Phi-4-mini-instruct"), "phi-4-mini");
  EXPECT_EQ(name("microsoft/Phi-4-multimodal-instruct"), "none");
  EXPECT_EQ(name("meta-llama/Meta-Llama-3-8B-Instruct"), name("meta-llama/Meta-Llama-3-8B"));
  EXPECT_EQ(name("Qwen/Qwen3-VL-4B-Instruct"), "none");
  EXPECT_EQ(name("gpt2-3b-of-mine"), "none");
  EXPECT_EQ(name("TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T"), "tinyllama-1.1b");
}

}  // namespace
}  // namespace headroom::doctor
