// Counts the heap: building a cache stays below data_memory_bytes() whatever the data, and reading batches allocates
// nothing.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "data/batch_reader.h"
#include "data/chat_renderer.h"
#include "data/token_cache_builder.h"

namespace {

std::atomic<int64_t> live{0}, peak{0}, calls{0};

void* counted(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(memory));
  ++calls;
  int64_t seen = peak;
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return memory;
}

void uncounted(void* memory) noexcept {
  if (memory != nullptr) live -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { uncounted(memory); }

namespace headroom {
namespace {

TEST(DataMemory, BuildingStaysBelowTheBoundWhateverTheData) {
  TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::bytes();
  const int64_t row_limit = 1 << 20, length = 512;
  const int64_t bound = data_memory_bytes(&tokenizer, length, row_limit);
  EXPECT_LT(bound, int64_t{48} << 20);
  const std::string long_row = "{\"text\":\"" + std::string(1000000, 'x') + "\"}\n";
  std::string short_rows, ids = "{\"input_ids\":[1";
  for (int i = 0; i < 20000; ++i) short_rows += "{\"text\":\"some words in row " + std::to_string(i) + "\"}\n";
  for (int i = 0; i < 100000; ++i) ids += ",1";
  ids += "],\"labels\":" + ids.substr(ids.find('[')) + "]}\n";
  const std::vector<std::filesystem::path> files = {
      directory.write("a.jsonl", long_row + long_row + short_rows), directory.write("b.txt", std::string(3000000, 'y')),
      directory.write("c.txt", std::string(short_rows)), directory.write("d.jsonl", ids + ids)};
  DataOptions options{files, length, 258, row_limit};
  build_token_cache(options, &tokenizer, directory / "cache");  // what is allocated once stays
  const int64_t before = live;
  peak = before;
  build_token_cache(options, &tokenizer, directory / "cache");
  EXPECT_LE(peak - before, bound);
  EXPECT_GE(peak - before, row_limit);
  EXPECT_EQ(live - before, 0);
}

// Real tokenizers stretch the text (a space becomes three bytes) and meet text without spaces. The stream gives the ids
// of the whole text.
TEST(DataMemory, RealTokenizersStayBelowTheBoundToo) {
  const std::filesystem::path shared = HEADROOM_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::exists(shared)) GTEST_SKIP();
  TemporaryDirectory directory;
  std::string text = read_text(shared / "text/wagahaiwa_nekodearu.txt").substr(0, 200001);
  while ((text.back() & 0xc0) == 0x80) text.pop_back();
  text.pop_back();
  text += read_text(shared / "text/tinyshakespeare.txt").substr(0, 200000);
  for (const char* name : {"llama2", "gpt2", "qwen2.5"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = Tokenizer::load(shared / "tokenizers" / name);
    DataOptions options{{directory.write("a.txt", text)}, 128, tokenizer.vocab_size(), 1 << 16};
    const int64_t before = live;
    peak = before;
    build_token_cache(options, &tokenizer, directory / "cache");
    EXPECT_LE(peak - before, data_memory_bytes(&tokenizer, 128, 1 << 16));
    EXPECT_LE(data_memory_bytes(&tokenizer, 128, 1 << 16), int64_t{16} << 20);
    const TokenCache cache = TokenCache::open(directory / "cache");
    std::vector<int32_t> ids(128), labels(128), all;
    for (int64_t i = 0; i < cache.sequences(); ++i) {
      const int64_t length = cache.read(i, ids, labels).length;
      all.insert(all.end(), ids.begin(), ids.begin() + length);
    }
    EXPECT_TRUE(all == tokenizer.encode(text, true));
  }
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
  const int64_t bound = data_memory_bytes(&tokenizer, 1 << 21) + ChatRenderer::memory_bytes();
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
