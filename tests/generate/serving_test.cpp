// Steps of many sequences: a row's logits are a function of its own sequence, bit for bit, for every family; the tokens
// are those of a generation alone.
#include <gtest/gtest.h>

#include <numeric>

#include "../formats/expect_error.h"
#include "../models/tiny_families.h"
#include "base/bytes.h"
#include "device/disk/scratch_file.h"
#include "engine/serving.h"
#include "tiny_generation.h"

namespace headroom {
namespace {

constexpr int64_t kLength = 23;  // of the sequence that is looked at

InferenceOptions served_options(const std::filesystem::path& model, int64_t memory) {
  InferenceOptions options;
  options.model = model;
  options.machine.memory = memory;
  options.machine.threads = 1;
  options.machine.profile = "cpu-avx2";
  return options;
}

ServingOptions small_sizes() {
  ServingOptions serving;
  serving.max_model_len = 40;
  serving.max_num_seqs = 16;
  serving.max_num_batched_tokens = 32;
  serving.block_size = 4;
  return serving;
}

// Of a test's own: tokens, and the blocks that hold them.
struct Held {
  std::vector<int32_t> tokens;
  std::vector<int32_t> blocks;
  int64_t done = 0;
};

using Logits = std::vector<std::vector<float>>;

// Adds `count` rows of a sequence to a step, all of whose logits are wanted.
void add_rows(Step& step, Held& held, int64_t count) {
  const auto table = static_cast<int32_t>(step.tables.size());
  step.tables.push_back(held.blocks);
  for (int64_t i = 0; i < count; ++i, ++held.done) {
    step.wanted.push_back(static_cast<int32_t>(step.rows.size()));
    step.rows.push_back({held.tokens[static_cast<size_t>(held.done)], static_cast<int32_t>(held.done), table});
  }
}

// Row `first` and those behind it.
void take_rows(std::span<const float> logits, int64_t vocab, int64_t first, int64_t count, Logits& out) {
  for (int64_t row = first; row < first + count; ++row) {
    const auto at = logits.subspan(static_cast<size_t>(row * vocab), static_cast<size_t>(vocab));
    out.emplace_back(at.begin(), at.end());
  }
}

// Logits of a sequence alone, in chunks.
Logits alone(StepRunner& runner, Held held, int64_t chunk) {
  Logits out;
  while (held.done < static_cast<int64_t>(held.tokens.size())) {
    const int64_t count = std::min<int64_t>(chunk, static_cast<int64_t>(held.tokens.size()) - held.done);
    Step step;
    add_rows(step, held, count);
    take_rows(runner.run(step), runner.limits().vocab, 0, count, out);
  }
  return out;
}

// The same between two others, that read as many tokens in every step, each its own.
Logits among_others(StepRunner& runner, Held held, int64_t chunk) {
  Held before{{held.tokens.rbegin(), held.tokens.rend()}, {20, 22, 24, 26, 28, 19}}, after = before;
  after.blocks = {21, 23, 25, 27, 29, 18};
  for (int32_t& token : after.tokens) token = (token + 5) % 90;
  Logits out;
  while (held.done < static_cast<int64_t>(held.tokens.size())) {
    const int64_t count = std::min<int64_t>(chunk, static_cast<int64_t>(held.tokens.size()) - held.done);
    Step step;
    add_rows(step, before, count);
    add_rows(step, held, count);
    add_rows(step, after, std::min<int64_t>(1, count));
    take_rows(runner.run(step), runner.limits().vocab, count, count, out);
  }
  return out;
}

void expect_same(const Logits& expected, const Logits& found, const std::string& what) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t row = 0; row < expected.size(); ++row)
    ASSERT_EQ(std::memcmp(expected[row].data(), found[row].data(), expected[row].size() * sizeof(float)), 0)
        << what << ", position " << row;
}

void expect_invariant(StepRunner& runner) {
  const Held held{tiny_prompt(kLength), {0, 1, 2, 3, 4, 5}};
  const Logits expected = alone(runner, held, 1);
  Held elsewhere = held;
  elsewhere.blocks = {17, 3, 11, 2, 30, 7};
  for (const int64_t chunk : {2, 3, 16}) expect_same(expected, alone(runner, elsewhere, chunk), "alone");
  for (const int64_t chunk : {1, 3, 7}) expect_same(expected, among_others(runner, elsewhere, chunk), "among others");
}

std::vector<TinyModel> served_families() {
  std::vector<TinyModel> models;
  for (const Family& family : families())
    for (const bool varied : {false, true}) {
      TinyModel model{std::string(family.architecture) + (varied ? "Variant" : ""), tiny_config(family)};
      if (varied) model.config.merge_patch(tiny_variant(family));
      model.config["vocab_size"] = 258;
      model.config["initializer_range"] = 0.2;
      const ModelSpec spec = read_model_spec(HfConfig::parse(model.config.dump(), "c.json"));
      if (spec.objective == Objective::language) models.push_back(std::move(model));
    }
  return models;
}

class ServedFamily : public testing::TestWithParam<TinyModel> {
 protected:
  void SetUp() override { write_tiny_model(directory_, GetParam().config.dump().c_str()); }

  ServedModel serve(const std::string& precision = "32-true") const {
    InferenceOptions options = served_options(directory_ / "model", int64_t{1} << 28);
    options.techniques.precision = precision;
    ServingPlan plan = plan_serving(options, small_sizes());
    EXPECT_TRUE(plan.plan.feasible);
    return ServedModel(options, std::move(plan));
  }

  TemporaryDirectory directory_;
};

TEST_P(ServedFamily, LogitsDependOnTheSequenceAlone) {
  ServedModel model = serve();
  expect_invariant(model.runner());
  EXPECT_LE(model.arena_high_water(), model.plan().plan.arena_bytes);
}

TEST_P(ServedFamily, LogitsDependOnTheSequenceAloneInBf16) {
  ServedModel model = serve("bf16-true");
  expect_invariant(model.runner());
}

TEST_P(ServedFamily, GreedyTokensAreThoseOfAGeneration) {
  constexpr int64_t kNew = 12;
  TinyGeneration generation(directory_ / "model", 40, 1);
  const std::vector<int32_t> expected = generation.run(tiny_prompt(9), {{0, 1, 0, 1}, kNew, {}});
  ServedModel model = serve();
  StepRunner& runner = model.runner();
  Held held{tiny_prompt(9), {5, 4, 3, 2, 1, 0}};
  std::vector<int32_t> found;
  while (static_cast<int64_t>(found.size()) < kNew) {
    Step step;
    add_rows(step, held, static_cast<int64_t>(held.tokens.size()) - held.done);
    const std::span<const float> logits = runner.run(step).last(static_cast<size_t>(runner.limits().vocab));
    found.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    held.tokens.push_back(found.back());
  }
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Families, ServedFamily, testing::ValuesIn(served_families()),
                         [](const auto& info) { return info.param.name; });

TEST(Served, CodesOfWeightsGiveLogitsOfTheSequenceAlone) {
  TemporaryDirectory directory;
  write_tiny_model(directory);
  for (const char* kind : {"int8", "int4"}) {
    InferenceOptions options = served_options(directory / "model", int64_t{1} << 28);
    options.techniques.pins["quantize-weights"] = kind;
    ServedModel model(options, plan_serving(options, small_sizes()));
    expect_invariant(model.runner());
  }
}

TEST(Served, WeightsOnDiskGiveTheSameLogits) {
  TemporaryDirectory directory;
  write_tiny_model(directory);
  try {
    const ScratchFile file(directory.path(), kDiskBlockBytes);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  InferenceOptions options = served_options(directory / "model", int64_t{1} << 28);
  const Held held{tiny_prompt(kLength), {0, 1, 2, 3, 4, 5}};
  ServedModel resident(options, plan_serving(options, small_sizes()));
  options.machine.disk_directory = directory.path();
  options.machine.disk_memory = int64_t{1} << 28;
  options.techniques.pins["offload-parameters"] = "disk";
  ServingPlan plan = plan_serving(options, small_sizes());
  ASSERT_TRUE(plan.plan.feasible);
  EXPECT_GT(plan.plan.disk.breakdown.weights, 0);
  ServedModel streamed(options, std::move(plan));
  expect_same(alone(resident.runner(), held, 1), alone(streamed.runner(), held, 7), "on disk");
}

class ServingPlanTest : public testing::Test {
 protected:
  void SetUp() override { write_tiny_model(directory_); }
  ServingPlan plan(int64_t memory, const ServingOptions& serving = {}) const {
    return plan_serving(served_options(directory_ / "model", memory), serving);
  }
  TemporaryDirectory directory_;
};

TEST_F(ServingPlanTest, TheLeastBudgetIsExact) {
  ServingOptions asked;
  asked.max_model_len = 48;
  asked.outside_bytes = 12345;
  for (const ServingOptions& serving : {ServingOptions{}, small_sizes(), asked}) {
    const ServingPlan refused = plan(1 << 20, serving);
    ASSERT_FALSE(refused.plan.feasible);
    const int64_t least = refused.plan.minimum_bytes;
    const ServingPlan served = plan(least, serving);
    ASSERT_TRUE(served.plan.feasible);
    EXPECT_EQ(served.plan.peak_bytes, least);
    EXPECT_EQ(served.plan.minimum_bytes, least);
    EXPECT_EQ(served.limits.blocks, served.limits.table_blocks);
    EXPECT_FALSE(plan(least - 1, serving).plan.feasible);
    EXPECT_EQ(plan(least - 1, serving).plan.minimum_bytes, least);
  }
}

TEST_F(ServingPlanTest, MoreMemoryHoldsNoLess) {
  const int64_t least = plan(1 << 20).plan.minimum_bytes;
  StepLimits before;
  for (int64_t memory = least; memory < least + (int64_t{6} << 20); memory += 100'000) {
    const ServingPlan served = plan(memory);
    ASSERT_TRUE(served.plan.feasible) << memory;
    EXPECT_LE(served.plan.peak_bytes, memory);
    EXPECT_GE(served.limits.rows, before.rows) << memory;
    EXPECT_GE(served.limits.sequences, before.sequences) << memory;
    EXPECT_GE(served.limits.positions, before.positions) << memory;
    if (served.limits.rows == before.rows && served.limits.sequences == before.sequences) {
      EXPECT_GE(served.limits.blocks, before.blocks) << memory;
    }
    before = served.limits;
  }
  EXPECT_EQ(before.rows, 256);
  EXPECT_EQ(before.sequences, 32);
}

TEST_F(ServingPlanTest, RegionsAddUpToThePeak) {
  for (const int64_t memory : {int64_t{40} << 20, int64_t{1} << 30}) {
    const ServingPlan served = plan(memory);
    ASSERT_TRUE(served.plan.feasible);
    int64_t sum = 0;
    for (const ServingRegion& region : served.regions) {
      EXPECT_GE(region.bytes, 0) << region.name;
      sum += region.bytes;
    }
    EXPECT_EQ(sum, served.plan.peak_bytes);
  }
}

TEST_F(ServingPlanTest, WhatTheServerHoldsIsBooked) {
  ServingOptions serving = small_sizes();
  const int64_t least = plan(1 << 20, serving).plan.minimum_bytes;
  serving.outside_bytes = int64_t{5} << 20;
  serving.outside = [](const StepLimits& limits) { return limits.blocks * 1024; };
  const int64_t more = plan(1 << 20, serving).plan.minimum_bytes - least;
  EXPECT_GE(more, (int64_t{5} << 20) + 10 * 1024);
  EXPECT_LE(more, (int64_t{5} << 20) + 10 * 1024 + (1 << 16));
  const ServingPlan served = plan(int64_t{1} << 30, serving);
  const int64_t embeddings = served.limits.logits * served.limits.hidden * 4;
  EXPECT_EQ(served.plan.process.server, align_up((int64_t{5} << 20) + served.limits.blocks * 1024 + embeddings, 4096));
}

TEST_F(ServingPlanTest, SizesOutOfRangeAreRefused) {
  const auto refuse = [&](const char* what, const auto& change) {
    ServingOptions serving;
    change(serving);
    expect_error(ErrorKind::usage, what, [&] { plan(int64_t{1} << 30, serving); });
  };
  refuse("--max-model-len 65", [](ServingOptions& s) { s.max_model_len = 65; });
  refuse("--max-model-len 0", [](ServingOptions& s) { s.max_model_len = 0; });
  refuse("--max-num-seqs 0", [](ServingOptions& s) { s.max_num_seqs = 0; });
  refuse("--max-num-batched-tokens -1", [](ServingOptions& s) { s.max_num_batched_tokens = -1; });
  refuse("--block-size 12", [](ServingOptions& s) { s.block_size = 12; });
  refuse("--block-size 256", [](ServingOptions& s) { s.block_size = 256; });
  refuse("--kv-cache-dtype fp8", [](ServingOptions& s) { s.kv_cache_dtype = "fp8"; });
  refuse("--max-num-batched-tokens 4", [](ServingOptions& s) { s.max_num_batched_tokens = 4, s.max_num_seqs = 5; });
}

}  // namespace
}  // namespace headroom
