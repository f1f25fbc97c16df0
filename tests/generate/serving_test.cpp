// Steps with many sequences: a row's logits depend, bitwise, only on its own sequence, for every family; the tokens are
// those of a generation alone.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "../data_files/data_files.h"
#include "../formats/expect_error.h"
#include "base/bytes.h"
#include "device/disk/scratch_file.h"
#include "engine/serving.h"
#include "served_families.h"
#include "small_server.h"
#include "solo_text.h"
#include "tiny_generation.h"

namespace headroom {
namespace {

constexpr int64_t kLength = 23;  // of the sequence under test

// Tokens, and the blocks that hold them.
struct Held {
  std::vector<int32_t> tokens;
  std::vector<int32_t> blocks;
  int64_t done = 0;
};

using Logits = std::vector<std::vector<float>>;

// Adds `count` rows of a sequence to a step and asks for all their logits.
void add_rows(Step& step, Held& held, int64_t count) {
  const auto table = static_cast<int32_t>(step.tables.size());
  step.tables.push_back(held.blocks);
  for (int64_t i = 0; i < count; ++i, ++held.done) {
    step.wanted.push_back(static_cast<int32_t>(step.rows.size()));
    step.rows.push_back({held.tokens[static_cast<size_t>(held.done)], static_cast<int32_t>(held.done), table});
  }
}

// Copies row `first` and the following ones.
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

// The same together with two others, which read as many tokens in every step.
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

class ServedFamily : public testing::TestWithParam<TinyModel> {
 protected:
  void SetUp() override { write_tiny_model(directory_, GetParam().config.dump().c_str()); }

  ServedModel serve(const std::string& precision = "32-true", const std::string& cache = "auto") const {
    InferenceOptions options = served_options(directory_ / "model");
    options.techniques.precision = precision;
    ServingOptions serving = small_sizes();
    serving.kv_cache_dtype = cache;
    ServingPlan plan = plan_serving(options, serving);
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

TEST_P(ServedFamily, LogitsDependOnTheSequenceAloneWithAnInt8Cache) {
  for (const char* precision : {"32-true", "bf16-true"}) {
    ServedModel model = serve(precision, "int8");
    EXPECT_EQ(model.plan().cache, DType::i8);
    expect_invariant(model.runner());
  }
}

// The largest difference of a row between two lists of logits, relative to the spread of the first.
double largest_difference(const Logits& exact, const Logits& found) {
  double largest = 0;
  for (size_t row = 0; row < exact.size(); ++row) {
    const auto [least, most] = std::ranges::minmax(exact[row]);
    for (size_t i = 0; i < exact[row].size(); ++i)
      largest = std::max(largest, static_cast<double>(std::fabs(exact[row][i] - found[row][i]) / (most - least)));
  }
  return largest;
}

TEST_P(ServedFamily, AnInt8CacheMovesLogitsLittle) {
  ServedModel exact = serve(), rounded = serve("32-true", "int8");
  const Held held{tiny_prompt(kLength), {0, 1, 2, 3, 4, 5}};
  const double moved = largest_difference(alone(exact.runner(), held, 7), alone(rounded.runner(), held, 7));
  EXPECT_GT(moved, 0);                                               // it is lossy
  const bool routed = !rounded.files().spec.experts.layers.empty();  // a router may choose other experts
  EXPECT_TRUE(routed || moved < 0.06) << moved;
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

// Rows of an MLP end within a vector.
TEST(Served, WidthsThatAreNoWholeVectorsGiveLogitsOfTheSequenceAlone) {
  TemporaryDirectory directory;
  std::string config = kTinyConfig;
  const std::string width = R"("intermediate_size":64)";
  config.replace(config.find(width), width.size(), R"("intermediate_size":45)");
  write_tiny_model(directory, config.c_str());
  for (const char* precision : {"32-true", "bf16-true", "16-true"}) {
    InferenceOptions options = served_options(directory / "model");
    options.techniques.precision = precision;
    ServedModel model(options, plan_serving(options, small_sizes()));
    expect_invariant(model.runner());
  }
}

TEST(Served, CodesOfWeightsGiveLogitsOfTheSequenceAlone) {
  TemporaryDirectory directory;
  write_tiny_model(directory);
  for (const char* kind : {"int8", "int4", "int8+embedding+head", "int4+head:int8-g32"}) {
    InferenceOptions options = served_options(directory / "model");
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
  InferenceOptions options = served_options(directory / "model");
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

int64_t best_of(const std::vector<float>& logits) { return std::ranges::max_element(logits) - logits.begin(); }

// The greedy text of a model with an f32 cache, read again by the same model with an int8 cache.
TEST(Served, AnInt8CacheReadsAGreedyTextAlike) {
  TemporaryDirectory directory;
  write_tiny_model(directory);
  std::vector<std::filesystem::path> models{directory / "model"};
  if (const auto trained = test::shared_file("data/stories260K");
      std::filesystem::exists(trained / "model.safetensors"))
    models.push_back(trained);
  for (const auto& path : models) {
    const InferenceOptions options = served_options(path);
    ServingOptions serving;
    serving.kv_cache_dtype = "f32";
    ServedModel exact(options, plan_serving(options, serving));
    serving.kv_cache_dtype = "int8";
    ServedModel rounded(options, plan_serving(options, serving));
    Held text{{1}, {3, 1, 0, 2}};
    Logits expected;
    for (; text.done < 64; text.tokens.push_back(static_cast<int32_t>(best_of(expected.back())))) {
      Step step;
      add_rows(step, text, 1);
      take_rows(exact.runner().run(step), exact.runner().limits().vocab, 0, 1, expected);
    }
    text.tokens.pop_back(), text.done = 0;
    const Logits found = alone(rounded.runner(), text, 32);
    expect_same(found, alone(rounded.runner(), text, 1), path);
    int64_t alike = 0;
    for (size_t row = 0; row < found.size(); ++row) alike += best_of(found[row]) == best_of(expected[row]) ? 1 : 0;
    EXPECT_LT(largest_difference(expected, found), 0.03) << path;
    EXPECT_GE(alike, 60) << path;
  }
}

// Greedy texts of requests whose answers are longer than earlier ones, through a scheduler that parks.
struct ParkedTexts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<SequenceEnd> ends;
  std::string error;
  SchedulerCounts counts;
};

ParkedTexts served_texts(StepRunner& runner, AdmissionRule rule) {
  SchedulerOptions options;
  options.rule = rule;
  Scheduler scheduler(runner, options);
  std::vector<std::shared_ptr<HeardText>> heard;
  const auto add = [&](int32_t first, int64_t max_tokens, size_t most) {
    SequenceRequest request;
    request.prompt = tiny_prompt(6);
    request.prompt[1] = first;
    request.max_tokens = max_tokens, request.sampling.temperature = 0;
    heard.push_back(std::make_shared<HeardText>());
    heard.back()->most = most;
    request.listener = heard.back();
    std::vector<SequenceRequest> group;
    group.push_back(std::move(request));
    std::vector<SequenceId> ids;
    EXPECT_EQ(scheduler.add(std::move(group), ids), Admission::taken);
  };
  const auto run = [&] {
    while (scheduler.step()) scheduler.check();
  };
  for (int32_t i = 0; i < 40; ++i) add(i, 34, 1);
  run();
  heard.clear();
  for (int32_t i = 0; i < 8; ++i) add(60 + i, 34, SIZE_MAX);
  run();
  ParkedTexts out;
  for (const auto& text : heard) {
    out.ids.push_back(text->ids());
    out.ends.push_back(text->end.value());
    if (!text->error.empty()) out.error = text->error;
  }
  out.counts = scheduler.counts();
  return out;
}

class ServedParking : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    write_tiny_model(directory_);
    options_ = served_options(directory_ / "model", 0);
    int8_ = GetParam() == std::string("int8");
    options_.techniques.precision = int8_ ? "32-true" : GetParam();
  }
  ServingOptions serving(const char* admission) const {
    ServingOptions sizes = small_sizes();
    sizes.max_num_seqs = 8;
    sizes.admission = admission;
    if (int8_) sizes.kv_cache_dtype = "int8";
    return sizes;
  }
  // A pool for one sequence of full length plus a few blocks.
  ServingPlan small_plan(const char* admission, std::optional<int64_t> park = std::nullopt) {
    ServingOptions sizes = serving(admission);
    sizes.park_memory = park;
    options_.machine.memory = 1 << 20;
    options_.machine.memory = plan_serving(options_, sizes).plan.minimum_bytes + 8192;
    ServingPlan plan = plan_serving(options_, sizes);
    EXPECT_TRUE(plan.plan.feasible);
    EXPECT_LE(plan.limits.blocks, 3 * plan.limits.table_blocks);
    return plan;
  }
  ParkedTexts expected() {
    options_.machine.memory = int64_t{1} << 28;
    ServedModel model(options_, plan_serving(options_, serving("guaranteed")));
    return served_texts(model.runner(), AdmissionRule::guaranteed);
  }

  TemporaryDirectory directory_;
  InferenceOptions options_;
  bool int8_ = false;  // the cache
};

TEST_P(ServedParking, ToMemoryAndBackIsBitwise) {
  const ParkedTexts wanted = expected();
  ServingPlan plan = small_plan("balanced");
  EXPECT_EQ(plan.limits.park_slots, plan.limits.table_blocks);
  EXPECT_FALSE(plan.parks_on_disk);
  ServedModel model(options_, std::move(plan));
  const ParkedTexts found = served_texts(model.runner(), AdmissionRule::balanced);
  EXPECT_EQ(found.ids, wanted.ids);
  EXPECT_GT(found.counts.parks, 0);
  EXPECT_GT(found.counts.blocks_loaded, 0);
  EXPECT_EQ(found.counts.parks, found.counts.resumes);
  EXPECT_LE(model.arena_high_water(), model.plan().plan.arena_bytes);
}

TEST_P(ServedParking, ToDiskAndBackIsBitwise) {
  const ParkedTexts wanted = expected();
  options_.machine.disk_directory = directory_.path();
  options_.machine.disk_memory = int64_t{1} << 22;
  ServingPlan plan = small_plan("balanced", 1 << 20);
  ASSERT_TRUE(plan.parks_on_disk);
  EXPECT_LE(plan.park_bytes(), 1 << 20);
  std::unique_ptr<ParkFile> file;
  try {
    file = reserve_park(plan);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  ServedModel model(options_, std::move(plan), {}, std::move(file));
  const ParkedTexts found = served_texts(model.runner(), AdmissionRule::balanced);
  EXPECT_EQ(found.ids, wanted.ids);
  EXPECT_GT(found.counts.parks, 0);
  EXPECT_GT(found.counts.blocks_loaded, 0);
}

TEST_P(ServedParking, ADiskThatFailsEndsWhatWasParkedAlone) {
  const ParkedTexts wanted = expected();
  options_.machine.disk_directory = directory_.path();
  options_.machine.disk_memory = int64_t{1} << 22;
  ServingPlan plan = small_plan("balanced");
  auto full = std::make_unique<ScratchFile>(::open("/dev/full", O_RDWR | O_CLOEXEC), directory_.path(), true);
  auto file = std::make_unique<ParkFile>(std::move(full), plan.block_bytes);
  ServedModel model(options_, std::move(plan), {}, std::move(file));
  const ParkedTexts found = served_texts(model.runner(), AdmissionRule::balanced);
  int64_t failed = 0;
  for (size_t i = 0; i < found.ids.size(); ++i) {
    if (found.ends[i] == SequenceEnd::failed)
      ++failed;
    else
      EXPECT_EQ(found.ids[i], wanted.ids[i]) << i;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 8);
  EXPECT_THAT(found.error, testing::HasSubstr("writing a parked sequence"));
  EXPECT_THAT(found.error, testing::HasSubstr("No space left"));
}

INSTANTIATE_TEST_SUITE_P(Precisions, ServedParking, testing::Values("32-true", "bf16-true", "int8"),
                         [](const auto& info) { return std::string(info.param).substr(0, info.index == 2 ? 4 : 2); });

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
  ServingOptions balanced = small_sizes(), parks = asked;
  balanced.admission = parks.admission = "balanced";
  parks.park_memory = 100'000;
  for (const ServingOptions& serving : {ServingOptions{}, small_sizes(), asked, balanced, parks}) {
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

TEST_F(ServingPlanTest, ThePartOfTheParkAreaIsARegion) {
  ServingOptions serving = small_sizes();
  serving.admission = "balanced";
  const auto region = [](const ServingPlan& of, const std::string& name) {
    for (const ServingRegion& region : of.regions)
      if (region.name == name) return region.bytes;
    return int64_t{0};
  };
  for (const std::optional<int64_t> asked : {std::optional<int64_t>(), std::optional<int64_t>(50'000)}) {
    serving.park_memory = asked;
    const ServingPlan served = plan(int64_t{1} << 28, serving);
    EXPECT_EQ(served.limits.park_slots, asked ? 50'000 / served.block_bytes : served.limits.table_blocks);
    EXPECT_EQ(region(served, "park"), served.limits.park_slots * served.block_bytes);
    EXPECT_EQ(region(served, "kv_pool"), served.limits.blocks * served.block_bytes);
    int64_t sum = 0;
    for (const ServingRegion& each : served.regions) sum += each.bytes;
    EXPECT_EQ(sum, served.plan.peak_bytes);
  }
  serving.park_memory = int64_t{1} << 40;  // more than can ever be parked
  const ServingPlan most = plan(int64_t{1} << 28, serving);
  EXPECT_EQ(most.limits.park_slots, most.limits.sequences * most.limits.table_blocks);
  EXPECT_EQ(region(plan(int64_t{1} << 28, small_sizes()), "park"), 0);
}

TEST_F(ServingPlanTest, TheParkFileIsWhatTheDiskHasLeft) {
  InferenceOptions options = served_options(directory_ / "model");
  options.machine.disk_directory = directory_.path();
  options.machine.disk_memory = 300'000;
  ServingOptions serving = small_sizes();
  serving.admission = "balanced";
  const ServingPlan served = plan_serving(options, serving);
  EXPECT_TRUE(served.parks_on_disk);
  EXPECT_EQ(served.limits.park_slots, 300'000 / ParkFile::slot_bytes(served.block_bytes));
  options.machine.disk_memory = int64_t{1} << 28;
  options.techniques.pins["offload-parameters"] = "disk";
  serving.park_memory = 200'000;
  const ServingPlan both = plan_serving(options, serving);
  ASSERT_TRUE(both.plan.feasible);
  EXPECT_EQ(both.limits.park_slots, 200'000 / ParkFile::slot_bytes(both.block_bytes));
  EXPECT_LE(both.plan.disk.arena_bytes + both.park_bytes(), options.machine.disk_memory);
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

TEST_F(ServingPlanTest, AnInt8PoolTakesAByteAnElementAndItsScales) {
  const auto plan_of = [](const std::string& cache) {
    ServingOptions serving;
    serving.max_num_seqs = 32;
    serving.kv_cache_dtype = cache;
    return plan_serving(served_options(test::data_file("models/smollm2-135m/config.json"), int64_t{1200} << 20),
                        serving);
  };
  const ServingPlan wide = plan_of("f32"), automatic = plan_of("auto"), codes = plan_of("int8");
  ASSERT_TRUE(wide.plan.feasible && codes.plan.feasible);
  EXPECT_EQ(automatic.cache, DType::f32);
  constexpr int64_t kLayers = 30, kHeads = 3, kDim = 64;
  EXPECT_EQ(wide.block_bytes, 2 * kLayers * 16 * kHeads * kDim * 4);
  EXPECT_EQ(codes.block_bytes, 2 * kLayers * 16 * kHeads * (kDim + 4));
  EXPECT_EQ(codes.regions[1].name, "kv_pool");
  EXPECT_EQ(codes.regions[1].bytes, codes.limits.blocks * codes.block_bytes);
  EXPECT_EQ(codes.limits.positions, wide.limits.positions);
  EXPECT_EQ(codes.limits.rows, wide.limits.rows);
  EXPECT_EQ(codes.limits.sequences, wide.limits.sequences);
  EXPECT_GT(codes.pool_tokens(), wide.pool_tokens() * 7 / 2);
  int64_t sum = 0;
  for (const ServingRegion& region : codes.regions) sum += region.bytes;
  EXPECT_EQ(sum, codes.plan.peak_bytes);
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
  for (const char* type : {"fp8", "fp8_e4m3", "fp8_e5m2", "i8", "int4"})
    refuse(type, [&](ServingOptions& s) { s.kv_cache_dtype = type; });
  refuse("--admission optimistic", [](ServingOptions& s) { s.admission = "optimistic"; });
  refuse("--park-memory has no meaning", [](ServingOptions& s) { s.park_memory = 1 << 20; });
  refuse("--park-memory 5 is too small for one block of",
         [](ServingOptions& s) { s.park_memory = 5, s.admission = "balanced"; });
  refuse("--max-num-batched-tokens 4", [](ServingOptions& s) { s.max_num_batched_tokens = 4, s.max_num_seqs = 5; });
}

}  // namespace
}  // namespace headroom
