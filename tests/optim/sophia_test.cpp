// Sophia: its kernels against its formula in double precision (make_sophia.py), and what an estimate leaves as it is.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "optim/curvature.h"
#include "stepper.h"

namespace headroom::op_test {
namespace {

void expect_numbers(const Tensor& found, const nlohmann::json& expected) {
  ASSERT_EQ(found.count(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < found.count(); ++i)
    EXPECT_NEAR(found.at(i), expected[static_cast<size_t>(i)].get<double>(), 2e-6) << i;
}

TEST(Sophia, ReachesTheWeightsOfItsFormula) {
  std::ifstream file(HEADROOM_SOURCE_DIR "/tests/optim/sophia.json");
  const nlohmann::json cases = nlohmann::json::parse(file).at("cases");
  ASSERT_EQ(cases.size(), 3u);
  for (const nlohmann::json& json : cases)
    for (const char* which : {"reference", "simd"}) {
      SCOPED_TRACE(which + json.at("args").get<std::string>());
      const auto first = json.at("weights").get<std::vector<double>>();
      const int64_t count = static_cast<int64_t>(first.size());
      Stepper stepper(OptimizerSettings("sophia", json.at("args").get<std::string>()), DType::f32, {count},
                      ParameterKind::matrix, {.only = which});
      ASSERT_EQ(stepper.state_names(), (std::vector<std::string>{"layer.weight.exp_avg", "layer.weight.hessian"}));
      Tensor weight(DType::f32, {count}, first);
      for (const nlohmann::json& pass : json.at("passes"))
        weight = stepper.step(weight, Tensor(DType::f32, {count}, pass.at("gradient").get<std::vector<double>>()),
                              json.at("lr").get<double>(), json.at("weight_decay").get<double>(), 1,
                              pass.at("drawn_labels").get<double>());
      expect_numbers(weight, json.at("result"));
      expect_numbers(stepper.state(0), json.at("exp_avg"));
      expect_numbers(stepper.state(1), json.at("hessian"));
    }
}

TEST(Sophia, AnEstimateChangesOnlyTheCurvature) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const char* which : {"reference", "simd"}) {
      Stepper stepper(OptimizerSettings("sophia", ""), dtype, {37, 5}, ParameterKind::matrix, {.only = which});
      const Tensor first = Tensor::random(dtype, {37, 5}, 1);
      const Tensor weight = stepper.step(first, Tensor::random(DType::f32, {37, 5}, 2), 0.1, 0.1);
      const Tensor mean = stepper.state(0), curvature = stepper.state(1);
      const Tensor after = stepper.step(weight, Tensor::random(DType::f32, {37, 5}, 3), 0.1, 0.1, 0.5, 64);
      expect_same_bytes(after, weight);
      expect_same_bytes(stepper.state(0), mean);
      EXPECT_FALSE(stepper.state(1).same_bytes(curvature));
      EXPECT_FALSE(weight.same_bytes(first));
    }
}

TEST(Sophia, EstimatesBeforeTheFirstStepAndThenEveryInterval) {
  const OptimizerSettings each3("sophia", "interval=3");
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= 8; ++step)
    if (estimates_before(each3, step)) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 4, 7}));
  EXPECT_DOUBLE_EQ(passes_per_step(each3), 1 + 1.0 / 3);
  EXPECT_FALSE(estimates_before(OptimizerSettings(), 1));
  EXPECT_EQ(passes_per_step(OptimizerSettings()), 1);
}

}  // namespace
}  // namespace headroom::op_test
