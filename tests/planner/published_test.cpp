// Plans for published models: offsets close to the lower bound, every access checked by the null device.
#include <gtest/gtest.h>

#include "device/device.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

void run_on_null(const Plan& chosen) {
  const std::unique_ptr<Device> device = make_null_device(chosen.facts);
  Executor executor(chosen, *device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : chosen.programs) executor.run(program.name, trips);
  EXPECT_EQ(executor.arena_high_water(), chosen.arena_bytes);
}

void expect_tight_and_sound(const Plan& chosen) {
  ASSERT_TRUE(chosen.feasible);
  EXPECT_LE(static_cast<double>(chosen.arena_bytes), 1.005 * static_cast<double>(chosen.lower_bound_bytes));
  run_on_null(chosen);
}

class Published : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { model_ = open_model(published(GetParam())); }
  ModelFiles model_;
};

TEST_P(Published, PlanIsTightAndSoundAtPlentyMinimumAndBetween) {
  TrainOptions options = fixed_options();
  const Plan plenty = plan(options, model_).plan;
  expect_tight_and_sound(plenty);
  for (int64_t budget : {plenty.minimum_bytes, (plenty.minimum_bytes + plenty.peak_bytes) / 2}) {
    options.machine.memory = budget;
    SCOPED_TRACE(budget);
    expect_tight_and_sound(plan(options, model_).plan);
  }
}

TEST_P(Published, PlanInBf16WithFusedUpdatesIsTightAndSound) {
  TrainOptions options = fixed_options();
  options.techniques.precision = "bf16-mixed";
  options.techniques.max_grad_norm = 0;
  options.techniques.pins["fused-optimizer"] = "on";
  const Plan chosen = plan(options, model_).plan;
  EXPECT_TRUE(chosen.choices.flag("fused_optimizer"));
  expect_tight_and_sound(chosen);
}

INSTANTIATE_TEST_SUITE_P(Models, Published,
                         testing::Values("smollm2-135m", "gpt2", "qwen2.5-0.5b", "tinyllama-1.1b-chat", "mistral-7b",
                                         "llama-2-7b"),
                         [](const testing::TestParamInfo<const char*>& param) {
                           std::string name = param.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(PublishedForAnAbsentDevice, PlanOf70BIsTightAndSound) {
  TrainOptions options = fixed_options();
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  const Plan chosen = plan(options, open_model(published("llama-3.1-70b"))).plan;
  EXPECT_EQ(chosen.parameters, 70553706496);
  EXPECT_EQ(chosen.facts.alignment, 256);
  expect_tight_and_sound(chosen);
}

}  // namespace
}  // namespace headroom::test
