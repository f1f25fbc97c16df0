// What embedding and head in slices of the vocabulary save where all that can be is on a disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/device.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

class VocabularySlices : public testing::Test {
 protected:
  void SetUp() override {
    model_ = open_model(published("smollm2-135m"));
    options_ = fixed_options();
    options_.machine.disk_memory = int64_t{20} << 30;
  }

  // Of a full fine-tuning step in fp32 with AdamW and clipping.
  Plan least(int64_t length, const std::map<std::string, std::string>& pins = {}) const {
    TrainOptions options = options_;
    options.data.max_seq_length = length;
    options.techniques.pins.insert(pins.begin(), pins.end());
    options.machine.memory = plan(options, model_).plan.minimum_bytes;
    return plan(options, model_).plan;
  }

  ModelFiles model_;
  TrainOptions options_;
};

TEST_F(VocabularySlices, AreTakenForTheLeastBudget) {
  const Plan sliced = least(512), whole = least(512, {{"vocabulary-slices", "off"}});
  ASSERT_TRUE(sliced.feasible && whole.feasible);
  EXPECT_EQ(sliced.choices.integer("vocabulary_slices"), 1);
  EXPECT_LE(sliced.peak_bytes * 10, whole.peak_bytes * 4);
  const std::unique_ptr<Device> device = make_null_device(sliced.facts);
  Executor executor(sliced, *device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : sliced.programs) executor.run(program.name, trips);
  EXPECT_EQ(executor.arena_high_water(), sliced.arena_bytes);
}

// Where the head is not the peak any more, parts of a long sequence save more.
TEST_F(VocabularySlices, LeaveTheLayersToPartsOfTheSequence) {
  const Plan both = least(8192), slices = least(8192, {{"sequence-chunks", "off"}});
  EXPECT_EQ(both.choices.integer("vocabulary_slices"), 1);
  EXPECT_LE(both.peak_bytes * 4, slices.peak_bytes * 3);
}

TEST_F(VocabularySlices, AreNotTakenIfTheArithmeticIsFixed) {
  options_.techniques.arithmetic = "fixed";
  EXPECT_EQ(least(512).choices.integer("vocabulary_slices"), 0);
}

TEST_F(VocabularySlices, AreRefusedWithoutALowerTier) {
  options_.machine.disk_memory = 0;
  try {
    least(512, {{"vocabulary-slices", "on"}});
    FAIL() << "taken without a lower tier";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("--technique vocabulary-slices=on"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--disk-memory"));
  }
}

}  // namespace
}  // namespace headroom::test
