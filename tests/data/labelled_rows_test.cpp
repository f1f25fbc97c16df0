// Rows with classes and rows that are masked, from files to the cache.
#include <gtest/gtest.h>

#include <algorithm>

#include "../formats/expect_error.h"
#include "../formats/temporary_directory.h"
#include "data/mask_tokens.h"
#include "data/token_cache_builder.h"
#include "formats/json.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

// [CLS] 2 ... [SEP] 3, words a 5, b 6, ##b 7.
Tokenizer words() {
  std::string added;
  for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    added += (added.empty() ? "" : ",") + Json{{"id", std::count(added.begin(), added.end(), '}')},
                                               {"content", name},
                                               {"single_word", false},
                                               {"lstrip", false},
                                               {"rstrip", false},
                                               {"normalized", false},
                                               {"special", true}}
                                              .dump();
  return Tokenizer::from_json(
      R"({"version":"1.0","normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},"decoder":null,
"post_processor":{"type":"TemplateProcessing","pair":[],
 "single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
 "special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
 "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"a":5,"b":6,"##b":7}},"added_tokens":[)" +
          added + "]}",
      "words");
}

struct Sequence {
  Ids ids;
  int32_t label = -1;
  bool operator==(const Sequence&) const = default;
};

class LabelledRows : public testing::Test {
 protected:
  LabelledRows() {
    options_.max_seq_length = 6;
    options_.vocab_size = 8;
    options_.labels = LabelKind::sequence_class;
    options_.classes = ClassNames(3, {{"bad", 0}, {"good", 1}, {"2", 0}});
  }
  std::vector<Sequence> build(const std::string& name, const std::string& content) {
    options_.files = {directory_.write(name, content)};
    counts_ = build_token_cache(options_, tokenizer_, directory_ / "cache");
    const TokenCache cache = TokenCache::open(directory_ / "cache");
    std::vector<Sequence> all;
    for (int64_t i = 0; i < cache.sequences(); ++i) {
      Ids ids(6), labels(6);
      const SequenceInfo info = cache.read(i, ids, labels);
      ids.resize(static_cast<size_t>(info.length));
      all.push_back({ids, info.class_label});
    }
    return all;
  }
  void refused(const std::string& name, const std::string& content, const std::string& message,
               ErrorKind kind = ErrorKind::format) {
    SCOPED_TRACE(content);
    std::filesystem::remove(directory_ / "cache");
    expect_error(kind, message, [&] { build(name, content); });
    EXPECT_FALSE(std::filesystem::exists(directory_ / "cache"));
  }

  TemporaryDirectory directory_;
  Tokenizer words_ = words();
  const Tokenizer* tokenizer_ = &words_;
  DataOptions options_;
  DataCounts counts_;
};

TEST_F(LabelledRows, StandBetweenSpecialTokensAndAreCutWithinThem) {
  EXPECT_EQ(build("d.jsonl", R"({"text":"a b","label":1}
{"text":"","label":0}
{"text":"ab b a b b","label":2}
)"),
            (std::vector<Sequence>{{{2, 5, 6, 3}, 1}, {{2, 5, 7, 6, 5, 3}, 2}}));
  EXPECT_EQ(counts_.rows, 3);
  EXPECT_EQ(counts_.empty_rows, 1);
  EXPECT_EQ(counts_.cut_rows, 1);
  EXPECT_EQ(counts_.lost_tokens, 2);
  EXPECT_EQ(counts_.targets, 2);
  EXPECT_EQ(build("d.json", R"([{"input_ids":[5,6,5,6,5,6,5],"label":0},{"input_ids":[5],"labels":2}])"),
            (std::vector<Sequence>{{{5, 6, 5, 6, 5, 6}, 0}, {{5}, 2}}));
}

TEST_F(LabelledRows, NamesAndNumbersMeanClasses) {
  EXPECT_EQ(build("d.jsonl", R"({"text":"a","label":"good"}
{"text":"a","label":2}
{"text":"a","label":"2"}
{"text":"a","label":"0"}
)"),
            (std::vector<Sequence>{{{2, 5, 3}, 1}, {{2, 5, 3}, 2}, {{2, 5, 3}, 0}, {{2, 5, 3}, 0}}));
  refused("d.jsonl", "{\"text\":\"a\",\"label\":0}\n{\"text\":\"a\",\"label\":3}",
          "d.jsonl:2: the label 3 is out of range: the model has 3 classes");
  refused("d.jsonl", "{\"text\":\"a\",\"label\":-1}", "d.jsonl:1: the label -1 is out of range");
  refused("d.jsonl", "{\"text\":\"a\",\"label\":99999999999999999999}", "is out of range");
  refused("d.jsonl", "{\"text\":\"a\",\"label\":\"fine\"}", "d.jsonl:1: the label 'fine' is not a class of the model");
  refused("d.jsonl", "{\"text\":\"a\"}", "d.jsonl:1: a row of {text}: the model classifies sequences");
  refused("d.jsonl", R"({"input_ids":[5],"labels":[5]})", "a row of {input_ids, labels}: the model classifies");
  refused("d.jsonl", R"({"prompt":"a","completion":"b"})", "a row of {prompt, completion}: the model classifies");
  refused("d.txt", "a", "d.txt is text without labels", ErrorKind::usage);
  options_.max_seq_length = 2;
  refused("d.tsv", "a\t1", "--max-seq-length 2 leaves no room for text besides 2 special tokens", ErrorKind::usage);
}

TEST_F(LabelledRows, Tables) {
  const std::vector<Sequence> expected{{{2, 5, 3}, 1}, {{2, 6, 5, 3}, 0}};
  EXPECT_EQ(build("d.tsv", "a\tgood\nb a\t0"), expected);
  EXPECT_EQ(build("d.tsv", "\xef\xbb\xbftext\tlabel\r\na\tgood\r\n\r\nb a\t0\r\n"), expected);
  EXPECT_EQ(build("d.tsv", "id\tlabel\ttext\n7\tgood\ta\n\n8\t0\tb a\n"), expected);
  EXPECT_EQ(build("d.tsv", "[a\t1\n").size(), 1u);
  EXPECT_EQ(build("d.tsv", "\t1\na\t1\n"), (std::vector<Sequence>{{{2, 5, 3}, 1}}));
  EXPECT_EQ(counts_.empty_rows, 1);
  refused("d.tsv", "words\tlabel\na\t1\n", "d.tsv:1: the label 'label' is not a class of the model");
  refused("d.tsv", "a\t1\nb\n", "d.tsv:2: 1 columns where 2 were expected");
  refused("d.tsv", "a\t1\nb\t1\t2\n", "d.tsv:2: 3 columns where 2 were expected");
  refused("d.tsv", "a\t1\nb\t\n", "d.tsv:2: the label is empty");
  refused("d.tsv", "a\t1\nb\xff\t1\n", "d.tsv:2: the text is not UTF-8: byte 5 is 0xff");
  refused("d.tsv", "text\tlabel\n", "d.tsv holds no rows");
  refused("d.tsv", "", "d.tsv holds no rows");
}

TEST_F(LabelledRows, TextsToBeMaskedStandBetweenSpecialTokens) {
  options_.labels = LabelKind::own_position;
  EXPECT_EQ(build("d.jsonl", "{\"text\":\"a b\"}\n{\"text\":\"ab b a b b\"}\n"),
            (std::vector<Sequence>{{{2, 5, 6, 3}}, {{2, 5, 7, 6, 5, 3}}}));
  EXPECT_TRUE(TokenCache::open(directory_ / "cache").info(1).unmasked);
  EXPECT_EQ(build("d.txt", "a b a b a b"), (std::vector<Sequence>{{{2, 5, 6, 5, 6, 5}}, {{6, 3}}}));
  build("d.jsonl", R"({"input_ids":[5,6],"labels":[6,-100]})");
  EXPECT_FALSE(TokenCache::open(directory_ / "cache").info(0).unmasked);
  EXPECT_EQ(counts_.targets, 1);
  refused("d.jsonl", R"({"text":"a","label":1})", "a row of {text, label}: the model predicts masked tokens");
  refused("d.jsonl", R"({"messages":[]})", "a row of {messages}: the model predicts masked tokens");
  const Tokenizer bytes = Tokenizer::bytes();
  tokenizer_ = &bytes;
  options_.vocab_size = 300;
  refused("d.jsonl", R"({"text":"a"})", "d.jsonl:1: texts are masked and the tokenizer has no mask token");
  refused("d.txt", "a", "texts are masked and the tokenizer has no mask token");
}

TEST_F(LabelledRows, TheKeyKnowsLabelsAndClasses) {
  options_.files = {directory_.write("d.tsv", "a\t1")};
  const uint64_t key = token_cache_key(options_, tokenizer_);
  options_.classes = ClassNames(3, {{"bad", 1}, {"good", 0}});
  EXPECT_NE(token_cache_key(options_, tokenizer_), key);
  options_.labels = LabelKind::own_position;
  EXPECT_NE(token_cache_key(options_, tokenizer_), key);
}

TEST_F(LabelledRows, SpecialTokensAreKnown) {
  EXPECT_EQ(find_mask_token(words_, {}), 4);
  EXPECT_EQ(special_token_ids(words_), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(find_mask_token(Tokenizer::bytes(), {}), std::nullopt);
  EXPECT_EQ(special_token_ids(Tokenizer::bytes()), (Ids{256, 257}));
  directory_.write("tokenizer_config.json", R"({"mask_token":{"content":"b"}})");
  EXPECT_EQ(find_mask_token(words_, directory_.path()), 6);
  directory_.write("tokenizer_config.json", R"({"mask_token":"absent"})");
  EXPECT_EQ(find_mask_token(words_, directory_.path()), 4);
}

}  // namespace
}  // namespace headroom
