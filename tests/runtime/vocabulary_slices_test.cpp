// Embedding and head in slices of the vocabulary, on a lower tier: near the plain run in an arena of NaN, without
// races.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/error.h"
#include "ir/row_slice.h"
#include "race_checker.h"
#include "tiny_run.h"

namespace headroom {
namespace {

constexpr int64_t kLower = int64_t{1} << 30;

struct Outcome {
  std::vector<double> losses;
  Plan plan;
};

class VocabularySlices : public testing::Test {
 protected:
  void write(const char* config = kTinyTableConfig) {
    directory_.emplace();
    write_tiny_model(*directory_, config);
    options_ = tiny_options(*directory_);
    options_.data.micro_batch_size = 2;
    options_.techniques.pins = {{"offload-parameters", "on"}, {"offload-gradients", "on"}, {"offload-optimizer", "on"}};
  }

  // Three steps and an evaluation.
  Outcome outcome(const std::string& slices) {
    TrainOptions options = options_;
    options.techniques.pins["vocabulary-slices"] = slices;
    test::RaceChecker* checker = nullptr;
    TinyRun run(options, *directory_ / "cache.bin", test::checked_cpu(checker), kLower);
    EXPECT_EQ(run.plan().choices.integer("vocabulary_slices"), slices == "on" ? 1 : 0);
    run.begin(std::byte{0xff});
    Outcome out;
    for (int64_t step = 1; step <= 3; ++step) out.losses.push_back(run.step(step));
    out.losses.push_back(run.evaluate());
    EXPECT_THAT(checker->races(), testing::IsEmpty());
    EXPECT_EQ(run.executor().arena_high_water(Tier::device), run.plan().arena_bytes);
    out.plan = run.plan();
    return out;
  }

  // Relative to the plain run's losses.
  void expect_near(double tolerance) {
    const Outcome plain = outcome("off"), sliced = outcome("on");
    ASSERT_EQ(plain.losses.size(), sliced.losses.size());
    for (size_t i = 0; i < plain.losses.size(); ++i)
      EXPECT_NEAR(sliced.losses[i], plain.losses[i], tolerance * plain.losses[i]) << i;
  }

  std::optional<TemporaryDirectory> directory_;
  TrainOptions options_;
};

// The numbers of rows that calls with products of the head, lookups and their gradients, and squared norms work on.
std::vector<int64_t> rows_of(const Plan& plan, const char* program) {
  std::vector<int64_t> rows;
  for (const Instruction& instruction : plan.program(program)->instructions)
    if (instruction.kind == InstructionKind::call && instruction.stage != Stage::transfer &&
        instruction.op->kind() != OpKind::update)
      if (const std::optional<RowSlice> slice = row_slice(instruction.attrs)) rows.push_back(slice->rows);
  return rows;
}

TEST_F(VocabularySlices, AreOfTheTablesSize) {
  write();
  const Plan plan = outcome("on").plan;
  std::vector<int64_t> step;  // lookup, softmax, gradient of the head, of the lookup; then the norm
  for (int part = 0; part < 5; ++part) step.insert(step.end(), {512, 512, 512, 512, 2});
  EXPECT_EQ(rows_of(plan, "train_step"), step);
  step.resize(10);
  EXPECT_EQ(rows_of(plan, "evaluate"), step);
}

TEST_F(VocabularySlices, AreNearThePlainRun) {
  write();
  expect_near(1e-6);
}

TEST_F(VocabularySlices, InMixedPrecisionAreNearThePlainRun) {
  write();
  for (const char* precision : {"bf16-mixed", "bf16-true", "16-mixed"}) {
    SCOPED_TRACE(precision);
    options_.techniques.precision = precision;
    expect_near(2e-3);
  }
}

TEST_F(VocabularySlices, WithAdaptersAreNearThePlainRun) {
  write();
  options_.techniques.lora.rank = 4;
  expect_near(1e-6);
}

TEST_F(VocabularySlices, WithUpdatesInTheBackwardPassAreNearThePlainRun) {
  write();
  options_.data.micro_batch_size = options_.data.global_batch_size;
  options_.techniques.max_grad_norm = 0;
  options_.techniques.pins["fused-optimizer"] = "on";
  options_.techniques.pins.erase("offload-gradients");
  expect_near(1e-6);
}

TEST_F(VocabularySlices, WithPartsOfTheSequenceAreNearThePlainRun) {
  write();
  options_.techniques.pins["sequence-chunks"] = "2";
  options_.techniques.pins["recompute"] = "on";
  expect_near(1e-6);
}

// Their sums have a fixed order: the same bits again.
TEST_F(VocabularySlices, RepeatTheirBits) {
  write();
  EXPECT_EQ(outcome("on").losses, outcome("on").losses);
}

TEST_F(VocabularySlices, NeedALargeHeadAndALowerTier) {
  write(kTinyConfig);
  try {
    outcome("on");
    FAIL() << "a head of one slice was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("needs a head larger than every matrix of a layer"));
  }
}

}  // namespace
}  // namespace headroom
