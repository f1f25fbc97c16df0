// Elementwise optimizers against their formulas in double precision, step by step: both kernels, odd lengths, weight
// decay, the clip factor.
#include <gtest/gtest.h>

#include <cmath>

#include "stepper.h"

namespace headroom::op_test {
namespace {

struct ElementStep {
  int t;
  double lr, decay;
};
using ElementStates = std::vector<double>;
// An element's new weight; updates its states in place.
using ElementFormula = double (*)(const ElementStep& step, double w, double g, ElementStates& s);

struct ElementCase {
  const char* optimizer;
  const char* args;
  std::vector<std::string> states;
  ElementFormula formula;
};

const ElementCase kElementCases[] = {
    {"adam",
     "beta1=0.8,beta2=0.9,eps=1e-6",
     {"exp_avg", "exp_avg_sq"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       g += step.decay * w;
       s[0] = 0.8 * s[0] + 0.2 * g;
       s[1] = 0.9 * s[1] + 0.1 * g * g;
       const double mean = s[0] / (1 - std::pow(0.8, step.t)), square = s[1] / (1 - std::pow(0.9, step.t));
       return w - step.lr * mean / (std::sqrt(square) + 1e-6);
     }},
    {"adamw_torch_fused",
     "beta1=0.8,beta2=0.9,eps=1e-6",
     {"exp_avg", "exp_avg_sq"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       s[0] = 0.8 * s[0] + 0.2 * g;
       s[1] = 0.9 * s[1] + 0.1 * g * g;
       const double mean = s[0] / (1 - std::pow(0.8, step.t)), square = s[1] / (1 - std::pow(0.9, step.t));
       return w - step.lr * step.decay * w - step.lr * mean / (std::sqrt(square) + 1e-6);
     }},
    {"rmsprop",
     "",
     {"square_avg"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       g += step.decay * w;
       s[0] = 0.99 * s[0] + 0.01 * g * g;
       return w - step.lr * g / (std::sqrt(s[0]) + 1e-8);
     }},
    {"rmsprop",
     "alpha=0.9,momentum=0.5",
     {"square_avg", "momentum_buffer"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       g += step.decay * w;
       s[0] = 0.9 * s[0] + 0.1 * g * g;
       s[1] = 0.5 * s[1] + g / (std::sqrt(s[0]) + 1e-8);
       return w - step.lr * s[1];
     }},
    {"rmsprop",
     "alpha=0.9,eps=1e-3,centered=true",
     {"square_avg", "grad_avg"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       g += step.decay * w;
       s[0] = 0.9 * s[0] + 0.1 * g * g;
       s[1] = 0.9 * s[1] + 0.1 * g;
       return w - step.lr * g / (std::sqrt(s[0] - s[1] * s[1]) + 1e-3);
     }},
    {"rmsprop",
     "alpha=0.9,eps=1e-3,centered=true,momentum=0.5",
     {"square_avg", "grad_avg", "momentum_buffer"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       g += step.decay * w;
       s[0] = 0.9 * s[0] + 0.1 * g * g;
       s[1] = 0.9 * s[1] + 0.1 * g;
       s[2] = 0.5 * s[2] + g / (std::sqrt(s[0] - s[1] * s[1]) + 1e-3);
       return w - step.lr * s[2];
     }},
    {"adagrad",
     "lr_decay=0.1",
     {"sum"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       g += step.decay * w;
       s[0] += g * g;
       return w - step.lr / (1 + 0.1 * (step.t - 1)) * g / (std::sqrt(s[0]) + 1e-10);
     }},
    {"lion",
     "beta2=0.99",
     {"exp_avg"},
     [](const ElementStep& step, double w, double g, ElementStates& s) {
       const double mean = 0.9 * s[0] + 0.1 * g;
       s[0] = 0.99 * s[0] + 0.01 * g;
       return w - step.lr * step.decay * w - step.lr * ((mean > 0) - (mean < 0));
     }},
};

void expect_formula(const ElementCase& expected, const char* which, int64_t count, ParameterKind kind) {
  Stepper stepper(OptimizerSettings(expected.optimizer, expected.args), DType::f32, {count}, kind, {.only = which});
  ASSERT_EQ(stepper.nodes(), 1u);
  ASSERT_EQ(stepper.node().op->update_grain(), 1);
  ASSERT_EQ(stepper.state_names().size(), expected.states.size());
  for (size_t i = 0; i < expected.states.size(); ++i)
    EXPECT_EQ(stepper.state_names()[i], "layer.weight." + expected.states[i]);
  Tensor weight = Tensor::random(DType::f32, {count}, 1);
  std::vector<double> exact(static_cast<size_t>(count));
  std::vector<ElementStates> states(exact.size(), ElementStates(expected.states.size(), 0));
  for (int64_t i = 0; i < count; ++i) exact[static_cast<size_t>(i)] = weight.at(i);
  for (int t = 1; t <= 8; ++t) {
    const Tensor gradient = Tensor::random(DType::f32, {count}, static_cast<uint64_t>(t) + 10);
    const double clip = t % 3 == 0 ? 0.5 : 1;
    weight = stepper.step(weight, gradient, 0.01, 0.2, clip);
    const ElementStep step{t, static_cast<double>(0.01f),
                           kind == ParameterKind::vector ? 0 : static_cast<double>(0.2f)};
    for (size_t i = 0; i < exact.size(); ++i)
      exact[i] = expected.formula(step, exact[i], gradient.at(static_cast<int64_t>(i)) * clip, states[i]);
  }
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_NEAR(weight.at(i), exact[static_cast<size_t>(i)], 3e-6) << i;
    for (size_t k = 0; k < expected.states.size(); ++k)
      ASSERT_NEAR(stepper.state(k).at(i), states[static_cast<size_t>(i)][k],
                  1e-5 * (1 + std::abs(states[static_cast<size_t>(i)][k])));
  }
}

TEST(Elementwise, OptimizersFollowTheirFormulas) {
  for (const ElementCase& expected : kElementCases)
    for (const char* which : {"reference", "simd"})
      for (const int64_t count : {1, 7, 1029})
        for (const ParameterKind kind : {ParameterKind::matrix, ParameterKind::vector}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", expected.optimizer, expected.args, which, count));
          expect_formula(expected, which, count, kind);
        }
}

// Both kernels round a narrow weight with the same random bits.
class NarrowWeights : public testing::TestWithParam<DType> {};

TEST_P(NarrowWeights, AreDrawnAlike) {
  for (const ElementCase& expected : kElementCases) {
    SCOPED_TRACE(expected.optimizer);
    const OptimizerSettings settings(expected.optimizer, expected.args);
    constexpr int64_t kCount = 4099;
    Stepper fast(settings, GetParam(), {kCount}, ParameterKind::matrix, {.only = "simd"});
    Stepper plain(settings, GetParam(), {kCount}, ParameterKind::matrix, {.only = "reference"});
    const Tensor weight = Tensor::random(GetParam(), {kCount}, 1), gradient = Tensor::random(DType::f32, {kCount}, 2);
    const Tensor a = fast.step(weight, gradient, 0.01, 0.1), b = plain.step(weight, gradient, 0.01, 0.1);
    int64_t other = 0;
    for (int64_t i = 0; i < kCount; ++i) other += a.at(i) != b.at(i);
    EXPECT_LE(other, 8);  // an ulp of f32 may cross a rounding threshold
    EXPECT_FALSE(a.same_bytes(weight));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowWeights, testing::Values(DType::bf16, DType::f16),
                         [](const auto& param) { return std::string(dtype_name(param.param)); });

TEST(Elementwise, LeaveOutAStepWithoutAFactor) {
  for (const ElementCase& expected : kElementCases)
    for (const char* which : {"simd", "reference"}) {
      Stepper stepper(OptimizerSettings(expected.optimizer, expected.args), DType::f32, {5}, ParameterKind::matrix,
                      {.only = which});
      const Tensor half = Tensor::filled(DType::f32, {5}, 0.5), gradient = Tensor::filled(DType::f32, {5}, NAN);
      EXPECT_TRUE(stepper.step(half, gradient, 0.1, 0.1, NAN).same_bytes(half)) << expected.optimizer;
      for (size_t i = 0; i < expected.states.size(); ++i) EXPECT_EQ(stepper.state(i).at(3), 0);
    }
}

}  // namespace
}  // namespace headroom::op_test
