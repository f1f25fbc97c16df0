// Generation with the key-value cache, against recomputing the whole sequence for every token.
#include "generate/generator.h"

#include <gtest/gtest.h>

#include "../formats/expect_error.h"
#include "tiny_generation.h"
#include "tokenizer/stream_decoder.h"

namespace headroom {
namespace {

class GeneratorTest : public testing::Test {
 protected:
  void SetUp() override { write_tiny_model(directory_); }
  GenerateOptions greedy(int64_t tokens) const { return {{0, 1, 0, 1}, tokens, {}}; }
  TemporaryDirectory directory_;
};

TEST_F(GeneratorTest, GreedyEqualsTheWholeSequenceAnew) {
  const std::vector<int32_t> start = tiny_prompt(5);
  TinyGeneration cached(directory_ / "model", 40, 16);
  const std::vector<int32_t> ids = cached.run(start, greedy(20));
  ASSERT_EQ(ids.size(), 20u);
  // One chunk that holds everything: each token comes from a full forward pass without cached rows.
  TinyGeneration whole(directory_ / "model", 40, 40);
  std::vector<int32_t> sequence = start;
  for (int32_t id : ids) {
    EXPECT_EQ(whole.run(sequence, greedy(1)), std::vector<int32_t>{id}) << "after " << sequence.size() << " tokens";
    sequence.push_back(id);
  }
}

TEST_F(GeneratorTest, ChunksOfAnySizeAgree) {
  for (const int64_t length : {1, 7, 8, 9, 23, 32}) {
    TinyGeneration reference(directory_ / "model", 44, 44);
    const std::vector<int32_t> expected = reference.run(tiny_prompt(length), greedy(10));
    for (const int64_t chunk : {1, 4, 8}) {
      TinyGeneration chunked(directory_ / "model", 44, chunk);
      EXPECT_EQ(chunked.run(tiny_prompt(length), greedy(10)), expected) << "prompt " << length << ", chunk " << chunk;
    }
  }
}

TEST_F(GeneratorTest, RunsAreIndependentOfEarlierOnes) {
  TinyGeneration generation(directory_ / "model", 44, 8);
  const GenerateOptions sampled{{1.0, 0.9, 0, 11}, 12, {}};
  const std::vector<int32_t> first = generation.run(tiny_prompt(20), sampled);
  generation.run(tiny_prompt(31), sampled);
  EXPECT_EQ(generation.run(tiny_prompt(20), sampled), first);
  GenerateOptions other = sampled;
  other.sampling.seed = 12;
  EXPECT_NE(generation.run(tiny_prompt(20), other), first);
}

TEST_F(GeneratorTest, Ends) {
  TinyGeneration generation(directory_ / "model", 44, 8);
  const std::vector<int32_t> free = generation.run(tiny_prompt(6), greedy(12));
  EXPECT_EQ(generation.run(tiny_prompt(6), greedy(12), 3), std::vector<int32_t>(free.begin(), free.begin() + 3));
  GenerateOptions stopped = greedy(12);
  stopped.stop_ids = {free[4]};
  const auto end = std::find(free.begin(), free.end(), free[4]);
  EXPECT_EQ(generation.run(tiny_prompt(6), stopped), std::vector<int32_t>(free.begin(), end))
      << "the stop id itself is not passed on";
}

TEST(CountNewTokens, DefaultIsCutToThePositions) {
  EXPECT_EQ(count_new_tokens({}, 10, 2048), 128);
  EXPECT_EQ(count_new_tokens({}, 10, 138), 128);
  EXPECT_EQ(count_new_tokens({}, 10, 64), 54);
  EXPECT_EQ(count_new_tokens({}, 63, 64), 1);
  expect_error(ErrorKind::usage, "64 positions", [] { count_new_tokens({}, 64, 64); });
  expect_error(ErrorKind::usage, "64 positions", [] { count_new_tokens({}, 1000, 64); });
}

TEST(CountNewTokens, WhatIsAskedForIsMadeOrRefused) {
  EXPECT_EQ(count_new_tokens(54, 10, 64), 54);
  EXPECT_EQ(count_new_tokens(1, 10, 64), 1);
  EXPECT_EQ(count_new_tokens(1000, 10, 2048), 1000);
  expect_error(ErrorKind::usage, "--max-new-tokens 55 exceed", [] { count_new_tokens(55, 10, 64); });
  expect_error(ErrorKind::usage, "64 positions", [] { count_new_tokens(INT64_MAX, 10, 64); });
  expect_error(ErrorKind::usage, "--max-new-tokens 0", [] { count_new_tokens(0, 10, 64); });
  expect_error(ErrorKind::usage, "--max-new-tokens -5", [] { count_new_tokens(-5, 10, 64); });
  try {
    count_new_tokens(55, 10, 64);
  } catch (const Error& error) {
    EXPECT_NE(error.remedy().find("--max-new-tokens 54 or less"), std::string::npos) << error.remedy();
  }
}

TEST_F(GeneratorTest, StreamedTextIsTheDecodedText) {
  const Tokenizer tokenizer = Tokenizer::load(directory_ / "model");
  TinyGeneration generation(directory_ / "model", 64, 16);
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<int32_t> ids = generation.run(tiny_prompt(3), {{1.5, 1, 0, seed}, 60, {257}});
    StreamDecoder decoder(tokenizer);
    std::string text;
    for (int32_t id : ids) text += decoder.push(id);
    text += decoder.finish();
    EXPECT_EQ(text, tokenizer.decode(ids));
  }
}

}  // namespace
}  // namespace headroom
