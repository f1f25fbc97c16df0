// A profile that measured attention by cuDNN and by our own kernels decides which of them a plan books and reckons
// with.
#include <gtest/gtest.h>

#include "ops/cuda/capabilities.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

constexpr int64_t kSpare = int64_t{64} << 10;  // what cuDNN's forward pass may use

struct Rates {
  double forward = 0, backward = 0;
};

// A Hopper whose profile has these rates besides its own; none where a rate is 0.
PlanRequest hopper_request(Rates own, Rates cudnn, const std::string& precision = "bf16-mixed") {
  TrainOptions options = fixed_options(int64_t{40} << 30);
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.techniques.precision = precision;
  options.data.max_seq_length = 64;
  PlanRequest request = fixed_request(options, llama_model("heads of 64", 1009, 256, 512, 4, 2));
  for (const auto& [kernels, rates] : {std::pair{"own", own}, {"cudnn", cudnn}})
    if (rates.forward > 0)
      request.profile.attention_kernels.push_back({DType::bf16, rates.forward, rates.backward, 64, 64, false, kernels});
  return request;
}

struct Found {
  std::string forward, backward;  // attribute "kernels"
  int64_t forward_scratch = 0, backward_scratch = 0;
  double forward_seconds = 0;
};

Found attention_of(const PlanRequest& request) {
  const Plan plan = search_training_plan(request).plan;
  Found found;
  for (const PlanProgram& program : plan.programs)
    for (const Instruction& each : program.instructions) {
      if (each.kind != InstructionKind::call || program.name != "train_step") continue;
      if (each.op->cost_class() == CostClass::attention)
        found.forward = each.attrs.text("kernels"), found.forward_scratch = each.scratch_bytes,
        found.forward_seconds = each.predicted_seconds;
      if (each.op->cost_class() == CostClass::attention_grad)
        found.backward = each.attrs.text("kernels"), found.backward_scratch = each.scratch_bytes;
    }
  return found;
}

TEST(AttentionKernels, TheFasterOnesAreBooked) {
  const Found plain = attention_of(hopper_request({}, {}));
  EXPECT_EQ(plain.forward, "");
  EXPECT_GE(plain.forward_scratch, kSpare);
  EXPECT_GE(plain.backward_scratch, kSpare);

  const Found own = attention_of(hopper_request({6e14, 6e14}, {4e14, 4e14}));
  EXPECT_EQ(own.forward, "own");
  EXPECT_EQ(own.backward, "own");
  EXPECT_EQ(own.forward_scratch, 0);
  EXPECT_LT(own.backward_scratch, kSpare);

  const Found cudnn = attention_of(hopper_request({4e14, 4e14}, {6e14, 6e14}));
  EXPECT_EQ(cudnn.forward, "cudnn");
  EXPECT_EQ(cudnn.backward, "cudnn");
  EXPECT_EQ(cudnn.forward_scratch, plain.forward_scratch);
  EXPECT_EQ(cudnn.backward_scratch, plain.backward_scratch);
}

TEST(AttentionKernels, EachDirectionIsChosenByItself) {
  const Found found = attention_of(hopper_request({6e14, 1e14}, {4e14, 4e14}));
  EXPECT_EQ(found.forward, "own");
  EXPECT_EQ(found.backward, "cudnn");
}

TEST(AttentionKernels, SecondsAreThoseOfTheChosenOnes) {
  const double slow = attention_of(hopper_request({1e9, 1e9}, {1e8, 1e8})).forward_seconds,
               fast = attention_of(hopper_request({4e9, 4e9}, {1e8, 1e8})).forward_seconds;
  EXPECT_NEAR(slow / fast, 4, 0.01);
}

// The rule of a device without a measurement stands.
TEST(AttentionKernels, OneMeasurementAloneChoosesNothing) {
  EXPECT_EQ(attention_of(hopper_request({6e14, 6e14}, {})).forward, "");
  EXPECT_EQ(attention_of(hopper_request({}, {6e14, 6e14})).forward, "");
}

// cuDNN takes no fp32, and no gradient before Hopper: what is left is ours, at our rate.
TEST(AttentionKernels, WhatCudnnDoesNotTakeIsOurs) {
  EXPECT_EQ(attention_of(hopper_request({4e14, 4e14}, {6e14, 6e14}, "32-true")).forward, "");
  PlanRequest ampere = hopper_request({4e14, 4e14}, {6e14, 6e14});
  ampere.facts.capabilities = of_compute_capability(80);
  const Found found = attention_of(ampere);
  EXPECT_EQ(found.forward, "cudnn");
  EXPECT_EQ(found.backward, "own");
}

}  // namespace
}  // namespace headroom::test
