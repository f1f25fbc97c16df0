// Counts heap bytes: building a cache stays below data_memory_bytes() for any data, and reading batches allocates
// nothing.
#include <gtest/gtest.h>

#include "../data_files/data_files.h"
#include "../formats/counted_heap.h"
#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "data/batch_reader.h"
#include "data/chat_renderer.h"
#include "data/pack_index.h"
#include "data/token_cache_builder.h"
#include "data/token_cache_writer.h"
#include "formats/token_names.h"

namespace headroom {
namespace {

using counted_heap::calls;
using counted_heap::live;
using counted_heap::peak;

TEST(DataMemory, BuildingStaysBelowTheBoundWhateverTheData) {
  TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::bytes();
  const int64_t row_limit = int64_t{16} << 20, length = 512;
  const int64_t bound = data_memory_bytes(length);
  EXPECT_LT(bound, int64_t{11} << 20);
  const std::string long_row = "{\"text\":\"" + std::string(16000000, 'x') + "\"}\n";
  std::string short_rows, ids = "{\"input_ids\":[1";
  for (int i = 0; i < 20000; ++i) short_rows += "{\"text\":\"some words in row " + std::to_string(i) + "\"}\n";
  for (int i = 0; i < 4000000; ++i) ids += ",1";
  ids += "],\"labels\":" + ids.substr(ids.find('[')) + "]}\n";
  const std::vector<std::filesystem::path> files = {
      directory.write("a.jsonl", long_row + long_row + short_rows), directory.write("b.txt", std::string(3000000, 'y')),
      directory.write("c.txt", std::string(short_rows)), directory.write("d.jsonl", ids + ids)};
  DataOptions options{files, length, 258, row_limit};
  build_token_cache(options, &tokenizer, directory / "cache");  // allocations that are made once stay
  const int64_t before = live;
  peak = before;
  build_token_cache(options, &tokenizer, directory / "cache");
  EXPECT_LE(peak - before, bound);
  EXPECT_EQ(live - before, 0);
}

// Real tokenizers lengthen the text (a space becomes three bytes) and get text without spaces. The stream gives the ids
// of the whole text.
TEST(DataMemory, RealTokenizersStayBelowTheBoundToo) {
  TemporaryDirectory directory;
  const std::string text = read_text(test::data_file("text/wagahaiwa_nekodearu.txt")) +
                           read_text(test::data_file("text/tinyshakespeare.txt"));
  std::vector<std::filesystem::path> folders;
  for (const std::filesystem::path& set : test::data_files("tokenizers"))
    for (const char* name : {"llama2", "gpt2", "qwen2.5"}) folders.push_back(set / name);
  for (const std::filesystem::path& folder : folders) {
    SCOPED_TRACE(folder.string());
    const Tokenizer tokenizer = Tokenizer::load(folder);
    DataOptions options{{directory.write("a.txt", text)}, 128, tokenizer.vocab_size(), 1 << 16};
    const int64_t before = live;
    peak = before;
    build_token_cache(options, &tokenizer, directory / "cache");
    EXPECT_LE(peak - before, data_memory_bytes(128));
    const TokenCache cache = TokenCache::open(directory / "cache");
    std::vector<int32_t> ids(128), labels(128), all;
    for (int64_t i = 0; i < cache.sequences(); ++i) {
      const int64_t length = cache.read(i, ids, labels).length;
      all.insert(all.end(), ids.begin(), ids.begin() + length);
    }
    EXPECT_TRUE(all == tokenizer.encode(text, true));
  }
}

// Loading a real tokenizer, and the memory that it keeps.
TEST(DataMemory, TokenizersStayBelowTheBoundOfTheirFile) {
  const std::filesystem::path tokenizers = HEADROOM_SOURCE_DIR "/../shared/data/tokenizers";
  if (!std::filesystem::exists(tokenizers)) GTEST_SKIP();
  for (const char* name : {"llama2", "gpt2", "qwen2.5", "bert-base-uncased", "gpt-neox-20b"}) {
    SCOPED_TRACE(name);
    const auto size = static_cast<int64_t>(std::filesystem::file_size(tokenizers / name / "tokenizer.json"));
    const int64_t before = live;
    peak = before;
    const Tokenizer tokenizer = Tokenizer::load(tokenizers / name);
    RecordProperty(std::string(name) + "_peak_per_byte",
                   std::to_string(static_cast<double>(peak - before) / static_cast<double>(size)));
    EXPECT_LE(peak - before, Tokenizer::memory_bound(size));
  }
}

// Members that headroom does not read take no memory.
TEST(DataMemory, FilesOfTokenNamesStayBelowTheirBound) {
  TemporaryDirectory directory;
  std::string text = R"({"bos_token":"<s>","added_tokens_decoder":{)";
  for (int i = 0; i < 50000; ++i)
    text += fmt::format("{}\"{}\":{{\"content\":\"<{}>\",\"special\":true}}", i == 0 ? "" : ",", i, i);
  const auto path = directory.write("tokenizer_config.json", text + R"(},"eos_token":{"content":"</s>"}})");
  const int64_t before = live;
  peak = before;
  const Json names = read_token_names(path);
  EXPECT_LE(peak - before, token_names_bytes(static_cast<int64_t>(text.size())));
  EXPECT_EQ(names, Json::parse(R"({"bos_token":"<s>","eos_token":{"content":"</s>"}})"));
}

// Rendering any row stays within the given heap, or is refused with file and line.
TEST(DataMemory, ConversationsStayWithinTheHeapThatTheyAreGiven) {
  TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::bytes();
  directory.write("chat_template.jinja",
                  "{% for m in messages %}{{ m.role }}:{{ m.content | string | trim }};{% endfor %}");
  const auto repeated = [](std::string_view piece, size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += piece;
    return text;
  };
  const auto scored = directory.write("b.jsonl", "{\"text\":\"some words\"}\n");
  size_t refused = 0, rows = 0;
  for (const size_t bytes : {size_t{1000}, size_t{100000}, size_t{4000000}})
    for (const char* piece :
         {"1,", "[],", "{},", "\"\",", "\"a\",", "1.5,", "null,", "\"abcdefghijklmnopqrstuvwxyz\",", "[[[]]],"}) {
      std::string list = repeated(piece, bytes);
      list.back() = ']';
      const std::string text = repeated("x", bytes);
      for (const std::string& row :
           {R"({"messages":[{"role":"user","content":")" + text +
                R"("},{"role":"assistant","content":"b"}],"tools":[)" + list + "}",
            R"({"messages":[{"role":"user","content":[)" + list + R"(},{"role":"assistant","content":"b"}]})"}) {
        DataOptions options{{directory.write("a.jsonl", row + "\n"), scored}, 64, 258};
        options.tokenizer_folder = directory.path();
        options.chat_bytes = ChatRenderer::kLeastBytes;
        const int64_t before = live;
        peak = before;
        ++rows;
        try {
          build_token_cache(options, &tokenizer, directory / "cache");
        } catch (const Error& e) {
          EXPECT_NE(std::string(e.what()).find("a.jsonl:1: "), std::string::npos) << e.what();
          ++refused;
        }
        EXPECT_LE(peak - before, data_memory_bytes(64) + ChatRenderer::kLeastBytes) << piece << bytes;
      }
    }
  EXPECT_GT(refused, rows / 4);
  EXPECT_LT(refused, 3 * rows / 4);
}

TEST(DataMemory, PackingStaysBelowItsBound) {
  TemporaryDirectory directory;
  const auto path = directory / "cache";
  TokenCacheWriter writer(path, 1, 128, 1000);
  const std::vector<int32_t> ids(128, 7);
  for (size_t i = 0; i < 200000; ++i) writer.append(std::span(ids).first(1 + i * 7919 % 128), 0);
  writer.finish({});
  const TokenCache cache = TokenCache::open(path);
  const int64_t before = live;
  peak = before;
  PackIndex::open_or_build(cache, SampleOrder(cache.sequences(), 1, true), 128, directory / "packs");
  EXPECT_LE(peak - before, PackIndex::memory_bytes(128));
}

// A long conversation, and one that is refused because it needs too much.
TEST(DataMemory, ConversationsStayBelowTheirBound) {
  TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::bytes();
  directory.write("tokenizer_config.json",
                  R"({"chat_template":"{% for m in messages %}{{ m.role }}:{{ m.content | trim }};{% endfor %}"})");
  std::string messages, pieces;
  for (int i = 0; i < 100; ++i)
    messages += std::string(i == 0 ? "" : ",") + "{\"role\":\"" + (i % 2 == 0 ? "user" : "assistant") +
                "\",\"content\":\"" + std::string(20000, 'x') + "\"}";
  for (int i = 0; i < 500000; ++i) pieces += "[],";
  const int64_t bound = data_memory_bytes(1 << 21) + ChatRenderer::kMostBytes;
  for (const bool fits : {true, false}) {
    const std::string tools = fits ? "" : ",\"tools\":[" + pieces + "1]";
    DataOptions options{{directory.write("a.jsonl", "{\"messages\":[" + messages + "]" + tools + "}\n")}, 1 << 21, 258};
    options.tokenizer_folder = directory.path();
    const int64_t before = live;
    peak = before;
    if (fits) {
      build_token_cache(options, &tokenizer, directory / "cache");
    } else {
      EXPECT_THROW(build_token_cache(options, &tokenizer, directory / "cache"), Error);
    }
    EXPECT_LE(peak - before, bound);
    EXPECT_LT(live - before, 1 << 20);
  }
}

TEST(DataMemory, ReadingBatchesAllocatesNothing) {
  TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::bytes();
  const std::string explicit_row = R"({"input_ids":[1,2,3],"labels":[-100,7,3]})";
  DataOptions options{
      {directory.write("a.txt", std::string(5000, 'x')), directory.write("b.jsonl", explicit_row)}, 64, 258};
  const TokenCache cache = open_or_build_token_cache(options, &tokenizer, directory / "cache");
  const SampleOrder order(cache.sequences(), 42, true);
  BatchReader reader(cache, order, 64, 8);
  std::vector<int32_t> token_ids(64 * 4), labels(64 * 4);
  const int64_t before = calls;
  int64_t targets = 0;
  for (int64_t step = 0; step < 3 * steps_per_epoch(cache.sequences(), 8); ++step) {
    targets -= reader.begin(samples_of_step(step, cache.sequences(), 8));
    for (int64_t row = 0; row < 8; row += 4) targets += reader.fill(row, 4, token_ids, labels);
  }
  EXPECT_EQ(calls - before, 0);
  EXPECT_EQ(targets, 0);
  EXPECT_EQ(BatchReader::memory_bytes(8), 8 * 40);
}

}  // namespace
}  // namespace headroom
