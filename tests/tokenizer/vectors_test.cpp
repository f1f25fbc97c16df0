// Real tokenizers against the ids of HF tokenizers and, for whole ones, of llama.cpp; small ones against golden.jsonl.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "tokenizer/pipeline.h"
#include "tokenizer_vectors.h"

namespace headroom {
namespace {

class RealTokenizer : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(RealTokenizer, matches) {
  const std::vector<Json> rows = read_rows(GetParam() / "vectors.jsonl");
  EXPECT_GE(rows.size(), 199U);
  check_rows(Tokenizer::load(GetParam()), rows);
}
INSTANTIATE_TEST_SUITE_P(tokenizers, RealTokenizer, testing::ValuesIn(real_tokenizers()),
                         [](const auto& param) { return test::data_file_label(param.param); });

struct LlamaCppSet {
  const char* set;
  const char* tokenizer;
};

void PrintTo(const LlamaCppSet& value, std::ostream* out) { *out << value.set; }

const std::filesystem::path kWhole = test::shared_file("data/tokenizers");

// For the whole tokenizers; empty if only the repository's are available.
std::vector<LlamaCppSet> llama_cpp_sets() {
  if (!std::filesystem::exists(kWhole)) return {};
  return {{"gpt-2", "gpt2"},
          {"qwen2", "qwen2.5"},
          {"llama-spm", "llama2"},
          {"phi-3", "llama2"},
          {"bert-bge", "bert-base-uncased"},
          {"mpt", "gpt-neox-20b"}};
}

class LlamaCppVectors : public testing::TestWithParam<LlamaCppSet> {};

TEST_P(LlamaCppVectors, match) {
  const std::string base = fmt::format("llama_cpp_vectors/ggml-vocab-{}.gguf", GetParam().set);
  std::stringstream texts;
  texts << std::ifstream(kWhole / (base + ".inp"), std::ios::binary).rdbuf();
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::ifstream ids_file(kWhole / (base + ".out"));
  std::vector<Json> rows;
  std::string all = texts.str();
  const Tokenizer tokenizer = Tokenizer::load(kWhole / GetParam().tokenizer);
  const PostProcessor& around = tokenizer.pipeline().post_processor();
  for (std::string line; std::getline(ids_file, line);) {
    std::vector<int32_t> ids;
    std::istringstream numbers(line);
    for (int32_t id; numbers >> id;) ids.push_back(id);
    const size_t end = all.find(separator);
    rows.push_back({{"text", all.substr(0, end)}, {"ids_no_special", ids}});
    ids.insert(ids.begin(), around.prefix.begin(), around.prefix.end());
    ids.insert(ids.end(), around.suffix.begin(), around.suffix.end());
    rows.back()["ids"] = ids;
    all.erase(0, end == std::string::npos ? all.size() : end + separator.size());
  }
  EXPECT_GE(rows.size(), 40U);
  check_rows(tokenizer, rows);
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LlamaCppVectors);
INSTANTIATE_TEST_SUITE_P(sets, LlamaCppVectors, testing::ValuesIn(llama_cpp_sets()), [](const auto& param) {
  std::string name = param.param.set;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST(golden, small_tokenizers_of_every_kind_match) {
  const std::vector<Json> cases = golden_bpe();
  ASSERT_EQ(cases.size(), 14U);
  for (const Json& golden : cases) {
    const auto name = golden.at("name").get<std::string>();
    SCOPED_TRACE(name);
    check_rows(Tokenizer::from_json(golden.at("tokenizer").dump(), name), golden.at("rows").get<std::vector<Json>>());
  }
}

TEST(golden, small_tokenizers_of_other_models_match) {
  const std::vector<Json> cases = golden_models();
  ASSERT_EQ(cases.size(), 16U);
  for (const Json& golden : cases) {
    const auto name = golden.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const auto rows = golden.at("rows").get<std::vector<Json>>();
    EXPECT_GE(rows.size(), 300U);
    check_rows(Tokenizer::from_json(golden.at("tokenizer").dump(), name), rows);
  }
}

TEST(golden, keys_in_another_order_give_the_same_tokenizer) {
  // nlohmann sorts keys, so merges come before the vocabulary, and the reader needs a second pass for them.
  const std::vector<Json> cases = golden_bpe();
  const std::string sorted = cases[0]["tokenizer"].dump();
  EXPECT_LT(sorted.find("\"merges\""), sorted.find("\"vocab\""));
  nlohmann::ordered_json reordered = nlohmann::ordered_json::parse(sorted);
  const nlohmann::ordered_json model = {
      {"vocab", reordered["model"]["vocab"]}, {"merges", reordered["model"]["merges"]}, {"type", "BPE"}};
  reordered["model"] = model;
  check_rows(Tokenizer::from_json(reordered.dump(), "reordered"), cases[0]["rows"].get<std::vector<Json>>());
}

TEST(vectors, a_real_small_model_knows_its_special_tokens) {
  const Tokenizer tokenizer = Tokenizer::load(test::data_file("stories260K"));
  EXPECT_EQ(tokenizer.vocab_size(), 512);
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_FALSE(tokenizer.adds_eos());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("Once upon a time, Łódź 🎉", true)), "Once upon a time, Łódź 🎉");
}

TEST(vectors, memory_is_reported_and_small) {
  for (const std::filesystem::path& set : test::data_files("tokenizers")) {
    SCOPED_TRACE(set.string());
    const Tokenizer tokenizer = Tokenizer::load(set / "qwen2.5");
    const int64_t tokens = test::is_in_tree(set) ? 4259 : 151646;
    EXPECT_EQ(tokenizer.vocab_size(), tokens);
    EXPECT_EQ(tokenizer.eos_id(), tokens - 3);
    EXPECT_FALSE(tokenizer.bos_id());
    EXPECT_GT(tokenizer.memory_bytes(), test::is_in_tree(set) ? 27 * tokens : 4 << 20);
    EXPECT_LT(tokenizer.memory_bytes(), test::is_in_tree(set) ? 1 << 20 : 8 << 20);
  }
}

}  // namespace
}  // namespace headroom
