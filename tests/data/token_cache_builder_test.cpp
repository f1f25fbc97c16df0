#include "data/token_cache_builder.h"

#include <gtest/gtest.h>

#include "../data_files/data_files.h"
#include "../formats/expect_error.h"
#include "../formats/file_size_limit.h"
#include "../formats/temporary_directory.h"
#include "data/alpaca_template.h"
#include "formats/json.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

struct Built {
  DataCounts counts;
  std::vector<Ids> ids, labels;
};

class Builder : public testing::Test {
 protected:
  Built build(const std::string& name, const std::string& content, int64_t max_seq_length = 16,
              int64_t vocab_size = 258) {
    options_.files = {directory_.write(name, content)};
    options_.max_seq_length = max_seq_length;
    options_.vocab_size = vocab_size;
    return build();
  }
  Built build() {
    Built built;
    built.counts = build_token_cache(options_, tokenizer_, directory_ / "cache");
    const TokenCache cache = TokenCache::open(directory_ / "cache");
    EXPECT_EQ(cache.counts(), built.counts);
    for (int64_t i = 0; i < cache.sequences(); ++i) {
      Ids ids(static_cast<size_t>(cache.max_seq_length())), labels(ids);
      const auto length = static_cast<size_t>(cache.read(i, ids, labels).length);
      built.ids.emplace_back(ids.begin(), ids.begin() + static_cast<int64_t>(length));
      built.labels.emplace_back(labels.begin(), labels.begin() + static_cast<int64_t>(length));
    }
    return built;
  }
  void refused(const std::string& name, const std::string& content, const std::string& message,
               ErrorKind kind = ErrorKind::format) {
    SCOPED_TRACE(content.substr(0, 100));
    expect_error(kind, message, [&] { build(name, content); });
    EXPECT_FALSE(std::filesystem::exists(directory_ / "cache"));
    std::filesystem::remove(directory_ / name);
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  }

  TemporaryDirectory directory_;
  Tokenizer bytes_ = Tokenizer::bytes();
  const Tokenizer* tokenizer_ = &bytes_;
  DataOptions options_;
};

Ids of_bytes(const std::string& text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

TEST_F(Builder, TheExampleOfTheContract) {
  const Built built = build("d.jsonl", R"({"prompt":"a","completion":"b"})");
  EXPECT_EQ(built.ids, (std::vector<Ids>{{256, 97, 98, 257}}));
  EXPECT_EQ(built.labels, (std::vector<Ids>{{-100, -100, 98, 257}}));
  EXPECT_EQ(built.counts.targets, 2);
  EXPECT_EQ(built.counts.rows, 1);
}

TEST_F(Builder, TextRowsBeginWithBosAndEndWithEos) {
  const Built built = build("d.jsonl", "{\"text\":\"hi\"}\n{\"text\":\"\"}\n{\"text\":\"\\u00e9\"}\n");
  EXPECT_EQ(built.ids, (std::vector<Ids>{{256, 104, 105, 257}, {256, 0xc3, 0xa9, 257}}));
  EXPECT_EQ(built.labels, built.ids);
  EXPECT_EQ(built.counts.rows, 3);
  EXPECT_EQ(built.counts.empty_rows, 1);
  EXPECT_EQ(built.counts.sequences, 2);
  EXPECT_EQ(built.counts.targets, 6);
}

TEST_F(Builder, LongRowsAreCutAndCounted) {
  const Built built = build("d.jsonl", "{\"text\":\"0123456789\"}\n{\"text\":\"ab\"}\n", 4);
  EXPECT_EQ(built.ids, (std::vector<Ids>{{256, 48, 49, 50}, {256, 97, 98, 257}}));
  EXPECT_EQ(built.counts.cut_rows, 1);
  EXPECT_EQ(built.counts.lost_tokens, 8);
  EXPECT_EQ(built.counts.longest, 4);
}

TEST_F(Builder, PromptRowsAreEmptyOnlyWithoutAnyText) {
  const Built built = build("d.jsonl",
                            "{\"prompt\":\"\",\"completion\":\"\"}\n{\"prompt\":\"\",\"completion\":\"a\"}\n{"
                            "\"prompt\":\"p\",\"completion\":\"\"}\n");
  EXPECT_EQ(built.ids, (std::vector<Ids>{{256, 97, 257}, {256, 112, 257}}));
  EXPECT_EQ(built.labels, (std::vector<Ids>{{-100, 97, 257}, {-100, -100, 257}}));
  EXPECT_EQ(built.counts.empty_rows, 1);
}

TEST_F(Builder, APromptThatFillsTheSequenceLeavesNothingToScore) {
  const Built built =
      build("d.jsonl", "{\"prompt\":\"01234\",\"completion\":\"x\"}\n{\"prompt\":\"0\",\"completion\":\"xyz\"}\n", 4);
  EXPECT_EQ(built.labels, (std::vector<Ids>{{-100, -100, -100, -100}, {-100, -100, 120, 121}}));
  EXPECT_EQ(built.counts.lost_tokens, 4 + 2);
  EXPECT_EQ(built.counts.targets, 2);
}

TEST_F(Builder, InstructionsAreRenderedAndOnlyTheOutputIsScored) {
  const Built built =
      build("d.json",
            R"([{"instruction":"Add","input":"1 2","output":"3"},{"instruction":"Hi","input":"","output":"Ho"}])", 400);
  const auto& with = kAlpacaWithInput;
  const auto& without = kAlpacaWithoutInput;
  const std::string first = std::string(with.before_instruction) + "Add" + std::string(with.before_input) + "1 2" +
                            std::string(with.before_output);
  const std::string second = std::string(without.before_instruction) + "Hi" + std::string(without.before_output);
  EXPECT_NE(first.find("### Input:\n1 2\n\n### Response:\n"), std::string::npos);
  for (const auto& [i, prompt, output] : {std::tuple(0u, first, "3"), std::tuple(1u, second, "Ho")}) {
    Ids ids = of_bytes(prompt + output);
    ids.insert(ids.begin(), 256);
    ids.push_back(257);
    EXPECT_EQ(built.ids[i], ids);
    Ids labels = ids;
    std::fill(labels.begin(), labels.begin() + 1 + static_cast<int64_t>(prompt.size()), -100);
    EXPECT_EQ(built.labels[i], labels);
  }
}

TEST_F(Builder, ATextFileIsOneStreamCutIntoSequences) {
  const Built built = build("d.txt", "0123456789", 4);
  EXPECT_EQ(built.ids, (std::vector<Ids>{{256, 48, 49, 50}, {51, 52, 53, 54}, {55, 56, 57}}));
  EXPECT_EQ(built.labels, built.ids);
  EXPECT_EQ(built.counts.targets, 3 + 3 + 2);
  EXPECT_EQ(built.counts.lost_tokens, 0);
}

TEST_F(Builder, ALongTextFileIsWhole) {
  std::string text;
  for (int i = 0; i < 300000; ++i)
    text += i % 61 == 0 ? "\xe6\x97\xa5 " : std::string(1, static_cast<char>('a' + i % 26));
  const Built built = build("d.txt", text, 1000);
  Ids all;
  for (const Ids& ids : built.ids) all.insert(all.end(), ids.begin(), ids.end());
  Ids expected = of_bytes(text);
  expected.insert(expected.begin(), 256);
  EXPECT_TRUE(all == expected);
}

TEST_F(Builder, ALongRowIsCutButCountedWhole) {
  const Built built = build("d.jsonl", "{\"text\":\"" + std::string(300000, 'x') + "\"}", 8);
  EXPECT_EQ(built.counts.tokens, 8);
  EXPECT_EQ(built.counts.lost_tokens, 300000 + 2 - 8);
}

TEST_F(Builder, TokenisedRowsNeedNoTokenizer) {
  tokenizer_ = nullptr;
  const Built built = build("d.jsonl",
                            "{\"input_ids\":[1,2,3],\"labels\":[-100,2,3]}\n{\"input_ids\":[],\"labels\":[]}\n"
                            "{\"input_ids\":[5,6,7,8,9],\"labels\":[5,-100,1,8,9]}\n",
                            4, 10);
  EXPECT_EQ(built.ids, (std::vector<Ids>{{1, 2, 3}, {5, 6, 7, 8}}));
  EXPECT_EQ(built.labels, (std::vector<Ids>{{-100, 2, 3}, {5, -100, 1, 8}}));
  EXPECT_EQ(built.counts.empty_rows, 1);
  EXPECT_EQ(built.counts.lost_tokens, 1);
  std::filesystem::remove(directory_ / "cache");
  refused("d.jsonl", R"({"text":"a"})", "d.jsonl:1: a row of {text} needs a tokenizer");
  refused("d.txt", "a", "d.txt is text and the model has no tokenizer", ErrorKind::usage);
}

TEST_F(Builder, BadTokenisedRowsAreNamed) {
  const auto row = [](const std::string& ids, const std::string& labels) {
    return "{\"input_ids\":" + ids + ",\"labels\":" + labels + "}";
  };
  refused("d.jsonl", row("[1,258]", "[1,2]"), "d.jsonl:1: input_ids[1] is 258, the model's vocab_size is 258");
  refused("d.jsonl", row("[1,-1]", "[1,2]"), "input_ids[1] is -1");
  refused("d.jsonl", row("[1,-100]", "[1,2]"), "input_ids[1] is -100");
  refused("d.jsonl", row("[1,2]", "[1,-2]"), "labels[1] is -2");
  refused("d.jsonl", row("[1,2]", "[1,999]"), "labels[1] is 999");
  refused("d.jsonl", row("[1,2]", "[1]"), "2 input_ids have 1 labels");
  refused("d.jsonl", row("[1,2.5]", "[1,2]"), "input_ids[1]: 2.5 where an integer was expected at byte 16 of the file");
  refused("d.jsonl", row("[1,\"2\"]", "[1,2]"), "input_ids[1]: '\"' where an integer was expected");
  refused("d.jsonl", row("[1,99999999999999999999]", "[1,2]"), "99999999999999999999 where an integer");
  refused("d.jsonl", row("[[1]]", "[[1]]"), "input_ids[0]: '[' where an integer");
  refused("d.jsonl", row("[1,2]", "[-100,-100]"), "no token of the 1 rows is scored");
  refused("d.jsonl", row("[1]", "[1]"), "no token of the 1 rows is scored");
}

TEST_F(Builder, BadFilesAreNamedAndLeaveNothing) {
  refused("d.jsonl", "{\"text\":\"a\"}\n\n{\"prompt\":\"a\",\"completion\":\"b\"}\n",
          "d.jsonl:3: a row of {prompt, completion} among rows of {text} (line 1)");
  refused("d.jsonl", "{\"text\":\"a\"}\nnot json\n", "d.jsonl:2: not JSON");
  refused("d.jsonl", "{\"text\":\"a\"}\n{\"text\":\"\xff\"}\n",
          "d.jsonl:2: not UTF-8 (byte 0xff) at byte 22 of the file");
  refused("d.jsonl", "", "holds no rows");
  refused("d.jsonl", "{\"text\":\"\"}\n", "no token of the 1 rows is scored (1 are empty)");
  refused("d.json", "[]", "holds no rows");
  refused("d.txt", "", "d.txt is empty");
  refused("d.txt", "abc\xff", "d.txt: ");
  refused("d.tsv", "a\t1", "d.tsv:1: a row of {text, label}: the model predicts the next token and has no classes");
  refused("d.parquet", "PAR1", "data of the kind '.parquet' is not known", ErrorKind::usage);
  refused("d", "x", "data of the kind '' is not known", ErrorKind::usage);
  options_.files = {directory_ / "missing.jsonl"};
  expect_error(ErrorKind::usage, "missing.jsonl", [&] { build(); });
  options_.files = {};
  expect_error(ErrorKind::usage, "no data was given", [&] { build(); });
}

TEST_F(Builder, ATokenizerAboveTheModelIsRefusedWhereItMatters) {
  expect_error(ErrorKind::format, "d.jsonl:1: the tokenizer gives the id 256, the model's vocab_size is 200",
               [&] { build("d.jsonl", R"({"text":"a"})", 16, 200); });
  expect_error(ErrorKind::format, "d.txt: the tokenizer gives the id 256", [&] { build("d.txt", "a", 16, 200); });
}

TEST_F(Builder, SeveralFilesMayHoldSeveralKinds) {
  options_.files = {directory_.write("a.jsonl", R"({"text":"a"})"),
                    directory_.write("b.json", R"([{"prompt":"p","completion":"c"}])"),
                    directory_.write("c.txt", "xyz")};
  options_.max_seq_length = 8;
  options_.vocab_size = 300;
  const Built built = build();
  EXPECT_EQ(built.ids, (std::vector<Ids>{{256, 97, 257}, {256, 112, 99, 257}, {256, 120, 121, 122}}));
  EXPECT_EQ(built.counts.rows, 3);
}

TEST_F(Builder, ACacheIsReusedUntilSomethingChanges) {
  options_.files = {directory_.write("a.jsonl", R"({"text":"a"})")};
  options_.max_seq_length = 8;
  options_.vocab_size = 300;
  const auto path = directory_ / "cache";
  bool reused = true;
  const auto open = [&] { return open_or_build_token_cache(options_, tokenizer_, path, &reused); };
  open();
  EXPECT_FALSE(reused);
  open();
  EXPECT_TRUE(reused);
  options_.max_seq_length = 9;
  open();
  EXPECT_FALSE(reused);
  directory_.write("a.jsonl", R"({"text":"ab"})");
  EXPECT_EQ(open().counts().tokens, 4);
  EXPECT_FALSE(reused);
  options_.files.push_back(options_.files[0]);
  EXPECT_EQ(open().sequences(), 2);
  EXPECT_FALSE(reused);
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(open().sequences(), 2);
  EXPECT_FALSE(reused);
}

TEST_F(Builder, ProgressIsReportedAndMayStop) {
  options_.files = {directory_.write("a.txt", std::string(3 << 20, 'x'))};
  options_.max_seq_length = 4096;
  options_.vocab_size = 300;
  std::vector<int64_t> seen;
  build_token_cache(options_, tokenizer_, directory_ / "cache", [&](int64_t done, int64_t all) {
    EXPECT_EQ(all, 3 << 20);
    seen.push_back(done);
  });
  EXPECT_EQ(seen, (std::vector<int64_t>{1 << 20, 2 << 20, 3 << 20}));
  std::filesystem::remove(directory_ / "cache");
  EXPECT_THROW(build_token_cache(options_, tokenizer_, directory_ / "cache",
                                 [](int64_t, int64_t) { throw Error(ErrorKind::run, "stop"); }),
               Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(Builder, AFullDiskLeavesNothing) {
  std::string rows;
  for (int i = 0; i < 20000; ++i) rows += "{\"text\":\"a\"}\n";
  directory_.write("data.jsonl", rows);
  options_.files = {directory_ / "data.jsonl"};
  options_.max_seq_length = 8;
  options_.vocab_size = 300;
  for (const rlim_t limit : {100, 100000, 300000, 700000}) {  // the data has 160,000 bytes, its index 480,000
    const FileSizeLimit full(limit);
    if (limit == 700000) {
      EXPECT_EQ(build().counts.sequences, 20000);
      continue;
    }
    expect_error(ErrorKind::run, "cannot write", [&] { build(); });
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
  }
}

TEST_F(Builder, RealRows) {
  options_.files = {test::data_file("text/identity.json")};
  options_.max_seq_length = 2048;
  options_.vocab_size = 258;
  const Json rows = read_json(options_.files[0]);
  const Built instructions = build();
  EXPECT_EQ(instructions.counts.rows, static_cast<int64_t>(rows.size()));
  EXPECT_EQ(instructions.counts.lost_tokens, 0);
  int64_t targets = 0;
  for (const Json& row : rows) targets += static_cast<int64_t>(row["output"].get<std::string>().size()) + 1;
  EXPECT_EQ(instructions.counts.targets, targets);

  const Json batch = read_json(HEADROOM_SOURCE_DIR "/tests/oracle/llama_gqa_tied/batch.json");
  std::string lines_of_ids;
  for (size_t i = 0; i < batch["input_ids"].size(); ++i)
    lines_of_ids += Json{{"input_ids", batch["input_ids"][i]}, {"labels", batch["labels"][i]}}.dump() + "\n";
  options_.files = {directory_.write("golden.jsonl", lines_of_ids)};
  options_.max_seq_length = 64;
  options_.vocab_size = 131;
  tokenizer_ = nullptr;
  const Built golden = build();
  std::ifstream lines(options_.files[0]);
  size_t i = 0;
  for (std::string line; std::getline(lines, line); ++i) {
    const Json row = Json::parse(line);
    EXPECT_EQ(golden.ids[i], row["input_ids"].get<Ids>());
    EXPECT_EQ(golden.labels[i], row["labels"].get<Ids>());
  }
  EXPECT_EQ(golden.ids.size(), i);
}

}  // namespace
}  // namespace headroom
