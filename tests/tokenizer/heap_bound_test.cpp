// The heap bounds that tokenizers state hold: every allocation of this program is counted.
#include <gtest/gtest.h>

#include <fstream>

#include "../data_files/data_files.h"
#include "../formats/counted_heap.h"
#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "gguf_metadata.h"
#include "tokenizer/stream_encoder.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_place.h"
#include "tokenizer/workspace.h"
#include "tokenizer_vectors.h"

namespace headroom {
namespace {

using counted_heap::live;
using counted_heap::peak;

// Texts that cannot be cut, texts that grow when normalized, ordinary texts.
const char* const kUnits[] = {"e", " ", "\u0301", "\U0001D160", "中", "e\u0301", "\u00a0", "\uFDFA", "the end, "};

void check_bounds(const std::string& name, const Json& file) {
  const std::string text = file.dump();
  const int64_t before = live;
  const Tokenizer tokenizer = Tokenizer::from_json(text, name);
  const int64_t held = live - before;
  EXPECT_LE(held, tokenizer.memory_bytes()) << name;
  for (const char* unit : kUnits) {
    std::string sample;
    while (sample.size() < 200'000) sample += unit;
    std::vector<int32_t> ids;
    ids.reserve(12 * sample.size());
    for (const int64_t piece : {int64_t{4096}, StreamEncoder::kDefaultMaxPieceBytes}) {
      ids.clear();
      const int64_t start = live;
      peak = start;
      StreamEncoder encoder(tokenizer, true, piece);
      encoder.feed(sample, ids);
      encoder.finish(ids);
      EXPECT_LE(peak - start, StreamEncoder::memory_bound(tokenizer, piece))
          << name << " pieces of " << piece << " of " << unit;
    }
    const int64_t between = live;
    tokenizer.encode(sample, true);
    EXPECT_LE(held + live - between, tokenizer.memory_bytes()) << name << " after " << unit;
  }
}

TEST(heap, stays_below_the_stated_bounds) {
  for (const Json& golden : golden_tokenizers())
    check_bounds(golden.at("name").get<std::string>(), golden.at("tokenizer"));
  check_bounds("bytes", Json::parse(bytes_tokenizer_json()));
}

// Writes a byte-level BPE whose tokens are all pairs of letters, and each pair with one more letter.
void write_large_tokenizer(const std::filesystem::path& folder) {
  std::ofstream file(folder / "tokenizer.json");
  file << R"({"version":"1.0","added_tokens":[],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
       << R"("use_regex":true},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)";
  std::vector<std::string> tokens;
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (const char c : letters) tokens.emplace_back(1, c);
  std::string merges;
  for (const size_t length : {size_t{1}, size_t{2}}) {
    const std::vector<std::string> shorter = tokens;
    for (const std::string& left : shorter)
      for (const char c : letters) {
        if (left.size() != length) continue;
        tokens.push_back(left + c);
        merges += (merges.empty() ? "\"" : ",\"") + left + ' ' + c + '"';
      }
  }
  for (size_t i = 0; i < tokens.size(); ++i) file << (i == 0 ? "\"" : ",\"") << tokens[i] << "\":" << i;
  file << "},\"merges\":[" << merges << "]}}\n";
}

class Loading : public testing::TestWithParam<bool> {};

TEST_P(Loading, TakesLittleMoreThanTheResult) {
  TemporaryDirectory made;
  if (!GetParam()) write_large_tokenizer(made.path());
  const std::filesystem::path folder = GetParam() ? test::shared_file("data/tokenizers/qwen2.5") : made.path();
  const int64_t start = live;
  peak = start;
  const Tokenizer tokenizer = Tokenizer::load(folder);
  EXPECT_GT(tokenizer.vocab_size(), 140'000);
  EXPECT_LE(live - start, tokenizer.memory_bytes());
  EXPECT_LE(peak - start, 2 * tokenizer.memory_bytes());
}

// true: a real one, if ../shared exists.
std::vector<bool> large_tokenizers() {
  return std::filesystem::exists(test::shared_file("data")) ? std::vector<bool>{false, true} : std::vector<bool>{false};
}
INSTANTIATE_TEST_SUITE_P(Large, Loading, testing::ValuesIn(large_tokenizers()),
                         [](const auto& param) { return param.param ? "Shared" : "Made"; });

// A GGUF's tokenizer takes no more than a tokenizer.json of its booked size, also while it is written as one.
void check_gguf(const GgufMetadata& metadata) {
  const TemporaryDirectory made;
  const std::filesystem::path file =
      made.write("model.gguf", metadata.bytes().number("tokenizer.ggml.bos_token_id", uint32_t{0}).file());
  const int64_t booked = tokenizer_file_bytes(file), header = tokenizer_header_bytes(file);
  const int64_t start = live;
  peak = start;
  const Tokenizer tokenizer = Tokenizer::load(file);
  EXPECT_EQ(tokenizer.vocab_size(), static_cast<int64_t>(metadata.tokens.size()));
  EXPECT_LE(live - start, tokenizer.memory_bytes());
  EXPECT_LE(peak - start, Tokenizer::memory_bound(booked) + header);
  EXPECT_LE(tokenizer.memory_bytes() - TokenizerWorkspace::kept_bytes(), 3 * booked);
  const int64_t before = live;
  peak = before;
  write_tokenizer_files(file, made.path());
  EXPECT_LE(peak - before, Tokenizer::memory_bound(booked) + header);
}

TEST(heap, of_a_gguf_is_what_is_booked) {
  TemporaryDirectory made;
  write_large_tokenizer(made.path());
  check_gguf(metadata_of(made.path(), "gpt-2"));
  check_gguf(metadata_of(test::data_file("tokenizers/llama2"), ""));
  // The most pairs: every part of a token is a token.
  GgufMetadata runs;
  runs.model = "llama";
  std::string run;
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz"))
    for (run.clear(); run.size() < 200;) runs.tokens.push_back(run += c);
  runs.types.assign(runs.tokens.size(), kTokenNormal);
  runs.scores.assign(runs.tokens.size(), 0);
  check_gguf(runs);
  // As many special tokens.
  runs.types.assign(runs.tokens.size(), kTokenControl);
  check_gguf(runs);
  runs.model = "gpt2";
  check_gguf(runs);
}

}  // namespace
}  // namespace headroom
