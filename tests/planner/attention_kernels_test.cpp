// A profile that measured attention by cuDNN and by headroom's own kernels decides which of them a plan books and
// predicts.
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/plan_training.h"
#include "ops/attention/cuda_scratch.h"
#include "ops/cuda/capabilities.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

constexpr int64_t kSpare = int64_t{64} << 10;  // workspace of cuDNN's forward pass

struct Rates {
  double forward = 0, backward = 0;
};

TrainOptions hopper_options(const std::string& precision = "bf16-mixed") {
  TrainOptions options = fixed_options(int64_t{40} << 30);
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.techniques.precision = precision;
  options.data.max_seq_length = 64;
  return options;
}

// A Hopper whose profile also has these rates; a rate of 0 is left out.
PlanRequest hopper_request(const TrainOptions& options, Rates own, Rates cudnn) {
  PlanRequest request = fixed_request(options, llama_model("heads of 64", 1009, 256, 512, 4, 2));
  for (const auto& [kernels, rates] : {std::pair{"own", own}, {"cudnn", cudnn}})
    if (rates.forward > 0)
      request.profile.attention_kernels.push_back({DType::bf16, rates.forward, rates.backward, 64, 64, false, kernels});
  return request;
}
PlanRequest hopper_request(Rates own, Rates cudnn, const std::string& precision = "bf16-mixed") {
  return hopper_request(hopper_options(precision), own, cudnn);
}

struct Found {
  std::string forward, backward;  // attribute "kernels"
  int64_t forward_scratch = 0, backward_scratch = 0;
  double forward_seconds = 0, backward_seconds = 0;
};

Found attention_of(const Plan& plan) {
  Found found;
  for (const PlanProgram& program : plan.programs)
    for (const Instruction& each : program.instructions) {
      if (each.kind != InstructionKind::call || program.name != "train_step") continue;
      if (each.op->cost_class() == CostClass::attention)
        found.forward = each.attrs.text("kernels"), found.forward_scratch = each.scratch_bytes,
        found.forward_seconds = each.predicted_seconds;
      if (each.op->cost_class() == CostClass::attention_grad)
        found.backward = each.attrs.text("kernels"), found.backward_scratch = each.scratch_bytes,
        found.backward_seconds = each.predicted_seconds;
    }
  return found;
}
Found attention_of(const PlanRequest& request) { return attention_of(search_training_plan(request).plan); }

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

// The rule for a device without a measurement applies.
TEST(AttentionKernels, OneMeasurementAloneChoosesNothing) {
  EXPECT_EQ(attention_of(hopper_request({6e14, 6e14}, {})).forward, "");
  EXPECT_EQ(attention_of(hopper_request({}, {6e14, 6e14})).forward, "");
}

// cuDNN does not support fp32, nor the gradient before Hopper: headroom's kernels are used, at their rate.
TEST(AttentionKernels, WhatCudnnDoesNotTakeIsOurs) {
  EXPECT_EQ(attention_of(hopper_request({4e14, 4e14}, {6e14, 6e14}, "32-true")).forward, "");
  PlanRequest ampere = hopper_request({4e14, 4e14}, {6e14, 6e14});
  ampere.facts.capabilities = of_compute_capability(80);
  const Found found = attention_of(ampere);
  EXPECT_EQ(found.forward, "cudnn");
  EXPECT_EQ(found.backward, "own");
}

// Rates with which any order is the fastest gradient, and cuDNN's fixed order the slowest, as on an H200.
constexpr Rates kOwn{3e9, 1.5e9}, kCudnn{6e9, 0.6e9};
constexpr double kAnyOrder = 4.5e9;

PlanRequest any_order_request(const TrainOptions& options, double measured) {
  PlanRequest request = hopper_request(options, kOwn, kCudnn);
  if (measured > 0)
    request.profile.attention_kernels.push_back({DType::bf16, 0, measured, 64, 64, false, "cudnn_any_order"});
  return request;
}
TrainOptions with_any_order(TrainOptions options = hopper_options()) {
  options.techniques.attention_order = "any";
  return options;
}

TEST(AttentionOrder, IsFixedUnlessTheUserSaysOtherwise) {
  TrainOptions options = hopper_options();
  options.techniques.allow = {"attention-order"};
  EXPECT_EQ(attention_of(any_order_request(options, kAnyOrder)).backward, "own");
  options.techniques.pins["attention-order"] = "fixed";
  EXPECT_EQ(attention_of(any_order_request(options, kAnyOrder)).backward, "own");
  options.techniques.pins["attention-order"] = "any";
  EXPECT_EQ(attention_of(any_order_request(options, kAnyOrder)).backward, "cudnn_any_order");
  const Found found = attention_of(any_order_request(with_any_order(), kAnyOrder));
  EXPECT_EQ(found.backward, "cudnn_any_order");
  EXPECT_EQ(found.forward, "cudnn");
}

TEST(AttentionOrder, SecondsAndWorkspaceAreThoseOfTheKernels) {
  const Found fixed = attention_of(any_order_request(hopper_options(), kAnyOrder)),
              any = attention_of(any_order_request(with_any_order(), kAnyOrder)),
              faster = attention_of(any_order_request(with_any_order(), 3 * kAnyOrder));
  EXPECT_NEAR(fixed.backward_seconds / any.backward_seconds, kAnyOrder / kOwn.backward, 0.01);
  EXPECT_NEAR(any.backward_seconds / faster.backward_seconds, 3, 0.01);
  EXPECT_DOUBLE_EQ(any.forward_seconds, fixed.forward_seconds);
  EXPECT_LT(fixed.backward_scratch, kSpare);
  AttentionShape shape;  // for a whole batch that fits the budget
  shape.batch = 8, shape.queries = shape.keys = 64, shape.heads = 4, shape.kv_heads = 2, shape.dim = 64;
  const PlanRequest hopper = any_order_request(with_any_order(), kAnyOrder);
  EXPECT_EQ(any.backward_scratch, cudnn_grad_workspace(shape, hopper.facts));
}

TEST(AttentionOrder, AFasterSetWithAFixedOrderStays) {
  EXPECT_EQ(attention_of(any_order_request(with_any_order(), 1e9)).backward, "own");
}

// Like the shipped profiles: if asked for, it is used on every GPU whose cuDNN supports it.
TEST(AttentionOrder, IsTakenWhereItWasNotMeasured) {
  EXPECT_EQ(attention_of(any_order_request(with_any_order(), 0)).backward, "cudnn_any_order");
  for (const char* profile : {"H100-80GB", "A100-80GB"}) {
    SCOPED_TRACE(profile);
    TrainOptions options = with_any_order();
    options.machine.profile = profile;
    const Found found = attention_of(hopper_request(options, {}, {}));
    EXPECT_EQ(found.forward, "");
    EXPECT_EQ(found.backward, "cudnn_any_order");
  }
}

// cuDNN does not get padding and segments; recomputation does not affect the gradient.
TEST(AttentionOrder, ComposesWithOtherTechniques) {
  TrainOptions options = with_any_order();
  options.techniques.packing = true;
  EXPECT_EQ(attention_of(any_order_request(options, kAnyOrder)).backward, "own");
  options = with_any_order();
  options.techniques.pins = {{"recompute", "on"}, {"chunked-loss", "64"}, {"micro-batch", "2"}};
  options.techniques.lora.rank = 4;
  EXPECT_EQ(attention_of(any_order_request(options, kAnyOrder)).backward, "cudnn_any_order");
}

TEST(AttentionOrder, ThePlanSaysSo) {
  for (const bool measured : {true, false}) {
    const Plan any = search_training_plan(any_order_request(with_any_order(), measured ? kAnyOrder : 0)).plan;
    EXPECT_EQ(any.choices.text("attention_order"), "any");
    EXPECT_EQ(taken_techniques(any).at("attention-order"), "any");
    for (const TechniqueReport& report : any.techniques)
      if (report.name == "attention-order") {
        EXPECT_EQ(report.kind, "reassociating");
        EXPECT_EQ(report.why.find("named by --attention-order; "), 0u) << report.why;
        EXPECT_EQ(report.why.find("has no rate") == std::string::npos, measured) << report.why;
        EXPECT_LE(report.saves_bytes, 0);
        if (measured) {
          EXPECT_LT(report.costs_seconds, 0);
        }
      }
  }
  const Plan fixed = search_training_plan(any_order_request(hopper_options(), kAnyOrder)).plan;
  EXPECT_EQ(fixed.choices.text("attention_order"), "");
  EXPECT_FALSE(taken_techniques(fixed).contains("attention-order"));
  for (const TechniqueReport& report : fixed.techniques)
    if (report.name == "attention-order") {
      EXPECT_EQ(report.value, "fixed");
      EXPECT_NE(report.why.find("--attention-order any"), std::string::npos) << report.why;
    }
}

std::string order_refusal(const TrainOptions& options) {
  try {
    search_training_plan(fixed_request(options, small_model()));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return std::string(error.what()) + " | " + error.remedy();
  }
  return "accepted";
}

TEST(AttentionOrder, IsRefusedWhereThereIsNone) {
  EXPECT_EQ(order_refusal(with_any_order()), "accepted");
  EXPECT_EQ(
      order_refusal(with_any_order(hopper_options("32-true"))),
      "--technique attention-order=any applies to bf16 attention only, not to --precision 32-true | add --precision "
      "bf16-mixed or bf16-true, or leave it out");
  TrainOptions options = with_any_order(fixed_options());
  options.techniques.precision = "bf16-mixed";
  EXPECT_EQ(order_refusal(options),
            "--technique attention-order=any is for GPUs; on the CPU the gradient of attention has a fixed order at no "
            "cost | leave it out");
  options.techniques.attention_order = "fixed";
  options.techniques.pins["attention-order"] = "fixed";
  EXPECT_EQ(order_refusal(options), "accepted");
  options = with_any_order();
  options.techniques.arithmetic = "fixed";
  EXPECT_EQ(order_refusal(options),
            "--technique attention-order=any does not give the same bits each time, as --arithmetic fixed requires | "
            "leave one of the two out");
  options = with_any_order();
  options.techniques.pins["attention-order"] = "fixed";
  EXPECT_EQ(order_refusal(options),
            "--technique attention-order=fixed contradicts --attention-order any | state one of them");
  options = hopper_options();
  options.techniques.pins["attention-order"] = "on";
  EXPECT_EQ(order_refusal(options), "'on' is not a setting of technique attention-order | one of fixed, any");
  options = hopper_options();
  options.techniques.attention_order = "some";
  EXPECT_NE(order_refusal(options).find("--attention-order 'some'"), std::string::npos) << order_refusal(options);
}

TEST(AttentionOrder, NeedsBf16OnTensorCores) {
  PlanRequest request = any_order_request(with_any_order(), 0);
  request.facts.capabilities = of_compute_capability(75);
  try {
    search_training_plan(request);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--technique attention-order=any needs compute capability 8.0 or later; this is 7.5");
  }
}

// Heads that are wide compared with the rest: cuDNN's workspace determines the least budget.
ModelFiles wide_heads() {
  ModelFiles model = llama_model("wide heads", 300, 128, 32, 32, 4);
  Json config = model.config.raw;
  config["head_dim"] = 64;
  config["max_position_embeddings"] = 512;
  model.config = HfConfig::parse(config.dump(), "wide heads/config.json");
  model.spec = read_model_spec(model.config);
  return model;
}

// Without that workspace the run would need less, but the choice is left to the user.
TEST(AttentionOrder, IsNotAmongWhatIsLeftToThePlanner) {
  TrainOptions options = with_any_order();
  options.machine.profile = "A100-80GB";  // where headroom's own kernels are used for a fixed order
  options.data.max_seq_length = 256;
  options.machine.memory = int64_t{1} << 20;
  TrainOptions fixed = options;
  fixed.techniques.attention_order = "fixed";
  const ModelFiles model = wide_heads();
  const Plan plan = plan_training(options, model).search.plan;
  ASSERT_GT(plan.minimum_bytes, plan_training(fixed, model).search.plan.minimum_bytes);
  for (const Alternative& other : plan.alternatives)
    EXPECT_EQ(other.options.find("let the planner choose"), std::string::npos) << other.options;
}

}  // namespace
}  // namespace headroom::test
