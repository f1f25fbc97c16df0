// Rows of two texts: joined and cut as by PyPI's tokenizers (pair_goldens.json), through the cache to batches.
#include <gtest/gtest.h>

#include "../formats/expect_error.h"
#include "../formats/temporary_directory.h"
#include "data/batch_reader.h"
#include "data/token_cache_builder.h"
#include "formats/json.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

class Pairs : public testing::Test {
 protected:
  Pairs() {
    options_.labels = LabelKind::sequence_class;
    options_.classes = ClassNames(2, {});
    options_.vocab_size = 14;
  }

  void build(const std::string& name, const std::string& content, const Tokenizer& tokenizer) {
    options_.files = {directory_.write(name, content)};
    build_token_cache(options_, &tokenizer, directory_ / "cache");
  }

  const Json goldens_ = read_json(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/data/pair_goldens.json");
  TemporaryDirectory directory_;
  DataOptions options_;
};

TEST_F(Pairs, AreJoinedAndCutAsTokenizersDoes) {
  std::string rows;
  for (const Json& pair : goldens_.at("pairs"))
    rows += Json{{"text", pair[0]}, {"text_pair", pair[1]}, {"label", 1}}.dump() + "\n";
  for (const Json& golden : goldens_.at("cases")) {
    const Tokenizer tokenizer = Tokenizer::from_json(golden.at("tokenizer").dump(), "golden");
    for (const Json& expected : golden.at("lengths")) {
      SCOPED_TRACE(fmt::format("{} to {}", golden.at("name").get<std::string>(), expected.at("max").get<int64_t>()));
      options_.max_seq_length = expected.at("max").get<int64_t>();
      build("d.jsonl", rows, tokenizer);
      const TokenCache cache = TokenCache::open(directory_ / "cache");
      BatchReader reader(cache, SampleOrder(cache.sequences(), 0, false), options_.max_seq_length, cache.sequences());
      reader.begin({0, cache.sequences()});
      ASSERT_EQ(cache.sequences(), static_cast<int64_t>(goldens_.at("pairs").size()));
      for (int64_t row = 0; row < cache.sequences(); ++row) {
        const auto length = static_cast<size_t>(options_.max_seq_length);
        Ids ids(length), labels(length), types(length);
        reader.fill(row, 1, ids, labels);
        reader.fill_types(row, 1, types);
        const size_t tokens = static_cast<size_t>(cache.info(row).length);
        EXPECT_EQ(Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(tokens)),
                  expected.at("ids")[static_cast<size_t>(row)].get<Ids>());
        EXPECT_EQ(Ids(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(tokens)),
                  expected.at("types")[static_cast<size_t>(row)].get<Ids>());
        for (size_t at = tokens; at < length; ++at) EXPECT_EQ(types[at], 0);
      }
    }
  }
}

TEST_F(Pairs, ComeFromTablesWithAHeader) {
  const Tokenizer tokenizer = Tokenizer::from_json(goldens_.at("cases")[0].at("tokenizer").dump(), "golden");
  options_.max_seq_length = 16;
  for (const char* content : {"sentence1\tsentence2\tlabel\nthe cat\ta dog ran\t1\n",
                              "index\tlabel\ttext_pair\ttext\n7\t1\ta dog ran\tthe cat\n"}) {
    build("d.tsv", content, tokenizer);
    const TokenCache cache = TokenCache::open(directory_ / "cache");
    Ids ids(16), labels(16);
    const SequenceInfo info = cache.read(0, ids, labels);
    ids.resize(static_cast<size_t>(info.length));
    EXPECT_EQ(ids, (Ids{2, 4, 5, 3, 8, 10, 12, 3}));
    EXPECT_EQ(info.second, 4);
    EXPECT_EQ(info.class_label, 1);
  }
}

TEST_F(Pairs, WithOneTokenTypeThereIsNoSecondText) {
  const Tokenizer tokenizer = Tokenizer::from_json(goldens_.at("cases")[0].at("tokenizer").dump(), "golden");
  options_.token_types = 1;
  options_.max_seq_length = 16;
  build("d.jsonl", R"({"text":"the cat","text_pair":"a dog","label":0})", tokenizer);
  const TokenCache cache = TokenCache::open(directory_ / "cache");
  EXPECT_EQ(cache.second_text(0), 7);
  EXPECT_EQ(cache.info(0).length, 7);
}

TEST_F(Pairs, WhatCannotBeReadIsRefusedByPlace) {
  Json json = goldens_.at("cases")[0].at("tokenizer");
  const Tokenizer tokenizer = Tokenizer::from_json(json.dump(), "golden");
  options_.max_seq_length = 16;
  const auto refused = [&](const std::string& name, const std::string& content, const Tokenizer& with,
                           const std::string& message, ErrorKind kind = ErrorKind::format) {
    expect_error(kind, message, [&] { build(name, content, with); });
    EXPECT_FALSE(std::filesystem::exists(directory_ / "cache"));
  };
  refused("d.jsonl", R"({"text":"a","text_pair":"b"})", tokenizer, "d.jsonl:1: a pair of texts without a label");
  refused("d.jsonl", R"({"text":"a","text_pair":3,"label":0})", tokenizer, "'text_pair' is 3, not a string");
  refused("d.jsonl", "{\"text\":\"a\",\"label\":0}\n{\"text\":\"a\",\"text_pair\":\"b\",\"label\":0}", tokenizer,
          "d.jsonl:2: a row of {text, text_pair, label} among rows of {text, label} (line 1)");
  refused("d.tsv", "sentence1\tsentence\tlabel\na\tb\t0\n", tokenizer, "names a text or the label twice");
  refused("d.tsv", "sentence1\tsentence2\tlabel\na\t0\n", tokenizer, "d.tsv:2: 2 columns where 3 were expected");
  options_.max_seq_length = 4;
  refused("d.jsonl", R"({"text":"a","text_pair":"b","label":0})", tokenizer, "--max-seq-length 4 leaves no room",
          ErrorKind::usage);
  options_.max_seq_length = 16;
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", Json::array({{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
                            {"pair", Json::array({{{"Sequence", {{"id", "B"}, {"type_id", 0}}}},
                                                  {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
                            {"special_tokens", Json::object()}};
  refused("d.jsonl", R"({"text":"a","text_pair":"b","label":0})", Tokenizer::from_json(json.dump(), "golden"),
          "no template of pairs");
}

}  // namespace
}  // namespace headroom
