// NAdam: its kernels against torch's numbers (make_nadam.py), and the scalars of late steps.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "stepper.h"

namespace headroom::op_test {
namespace {

using Json = nlohmann::json;

void expect_near(const Tensor& found, const Json& expected) {
  ASSERT_EQ(found.count(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < found.count(); ++i)
    EXPECT_NEAR(found.at(i), expected[static_cast<size_t>(i)].get<double>(), 1e-6) << i;
}

TEST(Nadam, ReachesTheWeightsOfTorch) {
  std::ifstream file(HEADROOM_SOURCE_DIR "/tests/optim/nadam.json");
  const Json cases = Json::parse(file).at("cases");
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& json : cases)
    for (const char* which : {"reference", "simd"}) {
      SCOPED_TRACE(which + json.at("args").get<std::string>());
      const auto first = json.at("weights").get<std::vector<double>>();
      const int64_t count = static_cast<int64_t>(first.size());
      Stepper stepper(OptimizerSettings("nadam", json.at("args").get<std::string>()), DType::f32, {count},
                      ParameterKind::matrix, {.only = which});
      Tensor weight(DType::f32, {count}, first);
      for (const Json& gradient : json.at("gradients"))
        weight = stepper.step(weight, Tensor(DType::f32, {count}, gradient.get<std::vector<double>>()),
                              json.at("lr").get<double>(), json.at("weight_decay").get<double>());
      expect_near(weight, json.at("result"));
      ASSERT_EQ(stepper.state_names(), (std::vector<std::string>{"layer.weight.exp_avg", "layer.weight.exp_avg_sq"}));
      expect_near(stepper.state(0), json.at("exp_avg"));
      expect_near(stepper.state(1), json.at("exp_avg_sq"));
    }
}

// The product of many momenta vanishes: the shares are those of a constant momentum beta1.
TEST(Nadam, HasTheSharesOfBeta1InLateSteps) {
  const Optimizer& nadam = find_optimizer("nadam");
  StepScalars scalars(nadam.scalars());
  nadam.fill(OptimizerSettings("nadam", ""), 5000000, scalars);
  const float expected[] = {static_cast<float>(1 - 0.9), 0.9f, 1.0f, 1e-8f};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(scalars.values()[static_cast<size_t>(kOwnScalar[i])], expected[i], 1e-7 * expected[i]) << i;
}

}  // namespace
}  // namespace headroom::op_test
