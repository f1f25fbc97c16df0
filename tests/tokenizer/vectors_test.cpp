// Real tokenizers against the ids of HF tokenizers and of llama.cpp; small ones against golden.jsonl.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "tokenizer/pipeline.h"
#include "tokenizer_vectors.h"

namespace headroom {
namespace {

class SharedVectors : public testing::TestWithParam<const char*> {};

TEST_P(SharedVectors, match) {
  const std::filesystem::path folder = shared_tokenizers() / GetParam();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data";
  check_rows(Tokenizer::load(folder), read_rows(folder / "vectors.jsonl"));
}
INSTANTIATE_TEST_SUITE_P(tokenizers, SharedVectors,
                         testing::Values("gpt2", "qwen2.5", "llama2", "gpt-neox-20b", "bert-base-uncased"),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name)
                             if (c == '.' || c == '-') c = '_';
                           return name;
                         });

struct LlamaCppSet {
  const char* set;
  const char* tokenizer;
};

void PrintTo(const LlamaCppSet& value, std::ostream* out) { *out << value.set; }

class LlamaCppVectors : public testing::TestWithParam<LlamaCppSet> {};

TEST_P(LlamaCppVectors, match) {
  const std::filesystem::path folder = shared_tokenizers();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data";
  const std::string base = fmt::format("llama_cpp_vectors/ggml-vocab-{}.gguf", GetParam().set);
  std::stringstream texts;
  texts << std::ifstream(folder / (base + ".inp"), std::ios::binary).rdbuf();
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::ifstream ids_file(folder / (base + ".out"));
  std::vector<Json> rows;
  std::string all = texts.str();
  const Tokenizer tokenizer = Tokenizer::load(folder / GetParam().tokenizer);
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
INSTANTIATE_TEST_SUITE_P(sets, LlamaCppVectors,
                         testing::Values(LlamaCppSet{"gpt-2", "gpt2"}, LlamaCppSet{"qwen2", "qwen2.5"},
                                         LlamaCppSet{"llama-spm", "llama2"}, LlamaCppSet{"phi-3", "llama2"},
                                         LlamaCppSet{"bert-bge", "bert-base-uncased"},
                                         LlamaCppSet{"mpt", "gpt-neox-20b"}),
                         [](const auto& param) {
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
  // nlohmann sorts keys: merges come before the vocabulary, which the reader then meets in a second pass.
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
  const std::filesystem::path folder = std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared/data/stories260K";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data";
  const Tokenizer tokenizer = Tokenizer::load(folder);
  EXPECT_EQ(tokenizer.vocab_size(), 512);
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_FALSE(tokenizer.adds_eos());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("Once upon a time, Łódź 🎉", true)), "Once upon a time, Łódź 🎉");
}

TEST(vectors, memory_is_reported_and_small) {
  const std::filesystem::path folder = shared_tokenizers() / "qwen2.5";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data";
  const Tokenizer tokenizer = Tokenizer::load(folder);
  EXPECT_EQ(tokenizer.vocab_size(), 151646);
  EXPECT_EQ(tokenizer.eos_id(), 151643);
  EXPECT_FALSE(tokenizer.bos_id());
  EXPECT_GT(tokenizer.memory_bytes(), 4 << 20);
  EXPECT_LT(tokenizer.memory_bytes(), 8 << 20);
}

}  // namespace
}  // namespace headroom
