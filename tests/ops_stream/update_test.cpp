// The update: AdamW against torch's formula in double precision, the gradient norm, the clip coefficient.
#include "stream_support.h"

namespace headroom::op_test {
namespace {

// torch.optim.AdamW (single tensor, no amsgrad), one step.
struct TorchAdamW {
  double lr, decay, beta1, beta2, eps;
  void step(int t, double g, double& w, double& m, double& v) const {
    w *= 1 - lr * decay;
    m += (g - m) * (1 - beta1);
    v = v * beta2 + (1 - beta2) * g * g;
    const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
    w -= lr / correction1 * m / (std::sqrt(v) / std::sqrt(correction2) + eps);
  }
};

Tensor hyper_of(const TorchAdamW& torch, int t) {
  Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
  hyper.set(0, torch.lr);
  hyper.set(1, torch.decay);
  hyper.set(2, 1 - std::pow(torch.beta1, t));
  hyper.set(3, std::sqrt(1 - std::pow(torch.beta2, t)));
  return hyper;
}

TEST(Update, AdamWFollowsTorch) {
  constexpr int64_t kCount = 37;
  for (const char* which : {"reference", "simd"})
    for (int64_t decay : {0, 1}) {
      const TorchAdamW torch{1e-2, decay ? 0.1 : 0.0, 0.9, 0.95, 1e-8};
      const Attrs attrs{{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"decay", decay}};
      Tensor w = Tensor::random(DType::f32, {kCount}, 1), m = Tensor::filled(DType::f32, {kCount}, 0), v = m;
      Tensor shadow = Tensor::filled(DType::bf16, {kCount}, 0);
      Vector ew = values(w), em = values(m), ev = values(v);
      for (int t = 1; t <= 20; ++t) {
        const Tensor g = Tensor::random(DType::f32, {kCount}, static_cast<uint64_t>(t) + 10);
        const double clip = t % 3 == 0 ? 0.5 : 1;
        Tensor hyper = hyper_of(torch, t);
        if (!decay) hyper.set(1, 0.3);  // must be ignored
        const RunResult found =
            run_op("adamw", {w, g, m, v, hyper, Tensor(DType::f32, {1}, {clip}), shadow}, attrs, {.only = which});
        for (size_t i = 0; i < kCount; ++i) torch.step(t, g.at(static_cast<int64_t>(i)) * clip, ew[i], em[i], ev[i]);
        w = found.outputs[0], m = found.outputs[1], v = found.outputs[2], shadow = found.outputs[3];
        for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(shadow.as<uint16_t>()[i], bfloat16(w.as<float>()[i]).bits);
      }
      expect_near(w, ew, 2e-6, 1e-6);
      expect_near(m, em, 1e-6, 1e-6);
      expect_near(v, ev, 1e-6, 1e-6);
    }
}

TEST(Update, SumSquaresJoinsInFloat64) {
  const Tensor big = Tensor::filled(DType::f32, {100000}, 1e4), small = Tensor::filled(DType::f32, {3}, 1e-2);
  for (const char* which : {"reference", "simd"}) {
    const RunOptions options{.only = which};
    Tensor acc(DType::f64, {1}, {123});
    acc = run_op("sum_squares", {big, acc}, {{"accumulate", "first"}}, options).outputs[0];
    EXPECT_DOUBLE_EQ(acc.at(0), 1e13);
    acc = run_op("sum_squares", {small, acc}, {{"accumulate", "always"}}, options).outputs[0];
    EXPECT_NEAR(acc.at(0), 1e13 + 3e-4, 2e-3);
  }
}

double coefficient(double squares, double most) {
  Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
  hyper.set(5, most);
  return run_op("clip_coefficient", {Tensor(DType::f64, {1}, {squares}), hyper}).outputs[0].at(0);
}

TEST(Update, ClipCoefficient) {
  EXPECT_EQ(coefficient(100, 0), 1);   // no clipping
  EXPECT_EQ(coefficient(0.25, 1), 1);  // below the limit
  EXPECT_NEAR(coefficient(100, 1), 1 / (10 + 1e-6), 1e-7);
  EXPECT_NEAR(coefficient(4, 0.5), 0.25, 1e-6);
  EXPECT_EQ(coefficient(0, 1), 1);
  EXPECT_TRUE(std::isnan(coefficient(NAN, 1)));
  EXPECT_TRUE(std::isnan(coefficient(INFINITY, 1)));
}

// For gradients with a loss scale of 1024: the norm is without it, and the coefficient removes it.
TEST(Update, ClipCoefficientTakesTheLossScaleBack) {
  const auto scaled = [](double squares, double most) {
    Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
    hyper.set(5, most);
    hyper.set(15, 0x1p-10);
    return run_op("clip_coefficient", {Tensor(DType::f64, {1}, {squares}), hyper}, {{"scaled", int64_t{1}}})
        .outputs[0]
        .at(0);
  };
  EXPECT_EQ(scaled(100, 0), 0x1p-10);
  EXPECT_EQ(scaled(0x1p20 * 0.25, 1), 0x1p-10);
  EXPECT_NEAR(scaled(0x1p20 * 100, 1), 0x1p-10 / (10 + 1e-6), 1e-10);
  for (const double most : {0.0, 1.0}) {
    EXPECT_TRUE(std::isnan(scaled(NAN, most)));
    EXPECT_TRUE(std::isnan(scaled(INFINITY, most)));
  }
}

// A gradient norm that is not finite must not affect weights and moments.
TEST(Update, AdamWLeavesOutAStepWithoutAFactor) {
  const Attrs attrs{{"beta1", 0.9}, {"beta2", 0.99}, {"eps", 1e-8}, {"decay", int64_t{1}}};
  const Tensor values = Tensor::filled(DType::f32, {5}, 0.5), gradient = Tensor::filled(DType::f32, {5}, NAN);
  const Tensor hyper = Tensor::filled(DType::f32, {16}, 0.1), none(DType::f32, {1}, {NAN});
  for (const char* which : {"simd", "reference"}) {
    const auto outputs =
        run_op("adamw", {values, gradient, values, values, hyper, none}, attrs, {.only = which}).outputs;
    for (const Tensor& output : outputs)
      for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(output.at(i), 0.5) << which;
  }
}

// The copy's storage may be a window that was not loaded.
TEST(Update, ASkippedStepRefreshesTheCopy) {
  const std::vector<int64_t> dims{6, 50};
  const Tensor weight = Tensor::random(DType::f32, dims, 1), gradient = Tensor::filled(DType::f32, dims, NAN);
  const Tensor state = Tensor::filled(DType::f32, dims, 0.5), rows = Tensor::filled(DType::f32, {6}, 0.5);
  const Tensor cols = Tensor::filled(DType::f32, {50}, 0.5), hyper = Tensor::filled(DType::f32, {16}, 0.1);
  const Tensor none(DType::f32, {1}, {NAN});
  const Attrs adam{{"beta1", 0.9}, {"beta2", 0.99}, {"eps", 1e-8}, {"decay", int64_t{1}}};
  const Attrs adafactor{{"beta1", 0.0},
                        {"eps1", 1e-30},
                        {"eps2", 1e-3},
                        {"clip_threshold", 1.0},
                        {"scale_parameter", int64_t{1}},
                        {"relative_step", int64_t{0}},
                        {"decay", int64_t{1}},
                        {"tensor", int64_t{7}},
                        {"factored", int64_t{1}}};
  const Attrs muon{{"momentum", 0.95},       {"nesterov", int64_t{1}}, {"match_rms_adamw", int64_t{1}},
                   {"ns_steps", int64_t{5}}, {"decay", int64_t{1}},    {"tensor", int64_t{7}}};
  for (const DType narrow : {DType::bf16, DType::f16})
    for (const char* which : {"simd", "reference"}) {
      const Tensor copy = Tensor::random(narrow, dims, 2);
      const auto refreshed = [&](const char* op, std::vector<Tensor> inputs, const Attrs& attrs) {
        inputs.insert(inputs.end(), {hyper, none, copy});
        const std::vector<Tensor> outputs = run_op(op, inputs, attrs, {.only = which}).outputs;
        EXPECT_TRUE(outputs.front().same_bytes(weight)) << op << ' ' << which;
        EXPECT_TRUE(outputs.back().same_bytes(rounded(weight, narrow))) << op << ' ' << which;
      };
      refreshed("adamw", {weight, gradient, state, state}, adam);
      refreshed("adafactor", {weight, gradient, rows, cols}, adafactor);
      if (std::string_view(which) == "reference") refreshed("muon", {weight, gradient, state}, muon);
    }
}

TEST(Update, LossScale) {
  Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
  hyper.set(4, 0.125);
  EXPECT_EQ(run_op("loss_scale", {hyper}).outputs[0].at(0), 0.125);
}

}  // namespace
}  // namespace headroom::op_test
