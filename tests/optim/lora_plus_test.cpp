// LoRA+: an adapter's B steps like a weight whose learning rate is larger by the ratio.
#include "optim/lora_plus.h"

#include <gtest/gtest.h>

#include "stepper.h"

namespace headroom::op_test {
namespace {

constexpr const char* kB = "base_model.model.layers.0.q_proj.lora_B.weight";
constexpr const char* kA = "base_model.model.layers.0.q_proj.lora_A.weight";

class LoraPlus : public testing::TestWithParam<const char*> {};

TEST_P(LoraPlus, MultipliesTheRateOfBAlone) {
  const OptimizerSettings plain(GetParam(), ""), plus(GetParam(), "loraplus_lr_ratio=16");
  const std::vector<int64_t> dims{70, 64};
  const auto after = [&](const OptimizerSettings& settings, const char* name, ParameterKind kind, double lr) {
    Stepper stepper(settings, DType::f32, dims, kind, {}, name);
    Tensor weight = Tensor::random(DType::f32, dims, 1);
    for (int step = 0; step < 3; ++step)
      weight = stepper.step(weight, Tensor::random(DType::f32, dims, 2 + step), lr, 0.01);
    return weight;
  };
  expect_same_bytes(after(plus, kB, ParameterKind::matrix, 1e-3), after(plain, kB, ParameterKind::matrix, 16e-3));
  expect_same_bytes(after(plus, kA, ParameterKind::matrix, 1e-3), after(plain, kA, ParameterKind::matrix, 1e-3));
  expect_same_bytes(after(plus, "norm.weight", ParameterKind::vector, 1e-3),
                    after(plain, "norm.weight", ParameterKind::vector, 16e-3));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, LoraPlus,
                         testing::Values("adamw", "adam", "sgd", "rmsprop", "adagrad", "lion_32bit", "adamw_bnb_8bit",
                                         "lion_8bit"));

TEST(LoraPlusRatio, IsOneWhereAnOptimizerHasNone) {
  EXPECT_EQ(lora_plus_ratio(OptimizerSettings("adafactor", "")), 1);
  EXPECT_EQ(lora_plus_ratio(OptimizerSettings("adamw", "")), 1);
  EXPECT_EQ(lora_plus_ratio(OptimizerSettings("adamw", "loraplus_lr_ratio=4")), 4);
  const Stepper plain(OptimizerSettings("adamw", ""), DType::f32, {4, 4}, ParameterKind::matrix, {}, kB);
  EXPECT_FALSE(plain.node().attrs.has("rate"));
}

}  // namespace
}  // namespace headroom::op_test
