// Adafactor against its formula in double precision (transformers' Adafactor), step after step, in both kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "stepper.h"

namespace headroom::op_test {
namespace {

using Numbers = std::vector<double>;

struct AdafactorSettings {
  const char* args;
  double beta1 = 0, clip = 1, eps2 = 1e-3;
  bool scales = false, relative = false, warms = false;
};
const AdafactorSettings kAdafactorSettings[] = {
    {"", 0, 1, 1e-3, false, false, false},
    {"clip_threshold=0.5,scale_parameter=true", 0, 0.5, 1e-3, true, false, false},
    {"beta1=0.9,eps2=0.9,scale_parameter=true", 0.9, 1, 0.9, true, false, false},
    {"relative_step=true", 0, 1, 1e-3, false, true, false},
    {"relative_step=true,warmup_init=true", 0, 1, 1e-3, false, true, true}};

double root_mean_square(const Numbers& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// A matrix, or with rows 0 a vector.
struct PlainAdafactor {
  AdafactorSettings settings;
  size_t rows, cols;
  Numbers w, row, col, moment;

  size_t height() const { return std::max<size_t>(1, rows); }

  Numbers unclipped(const Numbers& g, int t) {
    const double fresh = std::pow(t, -0.8);
    Numbers mean_row(height()), mean_col(cols), u(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      mean_row[i / cols] += (g[i] * g[i] + 1e-30) / static_cast<double>(cols);
      mean_col[i % cols] += (g[i] * g[i] + 1e-30) / static_cast<double>(height());
    }
    double mean = 0;
    for (size_t r = 0; r < height(); ++r) mean += row[r] = (1 - fresh) * row[r] + fresh * mean_row[r];
    mean /= static_cast<double>(height());
    for (size_t c = 0; c < cols; ++c) col[c] = (1 - fresh) * col[c] + fresh * mean_col[c];
    for (size_t i = 0; i < g.size(); ++i)
      u[i] = g[i] / std::sqrt(col[i % cols] * (rows > 0 ? row[i / cols] / mean : 1));
    return u;
  }

  void step(const Numbers& g, int t, double lr, double decay) {
    Numbers u = unclipped(g, t);
    if (settings.relative) lr = std::min(settings.warms ? 1e-6 * t : 1e-2, 1 / std::sqrt(t));
    if (settings.scales) lr *= std::max(settings.eps2, root_mean_square(w));
    const double scale = lr / std::max(1.0, root_mean_square(u) / settings.clip);
    for (size_t i = 0; i < g.size(); ++i) {
      moment[i] = settings.beta1 * moment[i] + (1 - settings.beta1) * u[i] * scale;
      w[i] -= lr * decay * w[i] + moment[i];
    }
  }
};

void expect_adafactor(const AdafactorSettings& settings, const char* which, int64_t rows, int64_t cols) {
  const std::vector<int64_t> dims = rows > 0 ? std::vector{rows, cols} : std::vector{cols};
  Stepper stepper(OptimizerSettings("adafactor", settings.args), DType::f32, dims,
                  rows > 0 ? ParameterKind::matrix : ParameterKind::vector, {.only = which});
  Tensor weight = Tensor::random(DType::f32, dims, 1);
  const size_t count = static_cast<size_t>(weight.count());
  PlainAdafactor plain{settings, static_cast<size_t>(rows), static_cast<size_t>(cols), {}, {}, {}, Numbers(count, 0)};
  plain.row.assign(plain.height(), 0), plain.col.assign(plain.cols, 0);
  for (size_t i = 0; i < count; ++i) plain.w.push_back(weight.at(static_cast<int64_t>(i)));
  for (int t = 1; t <= 5; ++t) {
    const Tensor gradient = Tensor::random(DType::f32, dims, static_cast<uint64_t>(t) + 10);
    const double clip = t == 3 ? 0.5 : 1;
    weight = stepper.step(weight, gradient, 0.02, 0.1, clip);
    Numbers g;
    for (size_t i = 0; i < count; ++i) g.push_back(clip * gradient.at(static_cast<int64_t>(i)));
    plain.step(g, t, static_cast<double>(0.02f), rows > 0 ? static_cast<double>(0.1f) : 0);
  }
  for (size_t i = 0; i < count; ++i) ASSERT_NEAR(weight.at(static_cast<int64_t>(i)), plain.w[i], 5e-6) << i;
  for (size_t c = 0; c < plain.cols; ++c)
    ASSERT_NEAR(stepper.state(rows > 0 ? 1 : 0).at(static_cast<int64_t>(c)), plain.col[c], 1e-5 * plain.col[c]);
}

TEST(Adafactor, FollowsTheFormula) {
  for (const AdafactorSettings& settings : kAdafactorSettings)
    for (const char* which : {"reference", "simd"})
      for (const auto& [rows, cols] : {std::pair{0, 37}, {1, 5}, {13, 1}, {7, 33}, {40, 600}}) {
        SCOPED_TRACE(fmt::format("{} {} {} x {}", settings.args, which, rows, cols));
        expect_adafactor(settings, which, rows, cols);
      }
}

TEST(Adafactor, KeepsSquaresOfRowsAndColumns) {
  const Optimizer& adafactor = find_optimizer("adafactor");
  const Type matrix{DType::bf16, {Dim::of(3), Dim::of(5)}}, stack{DType::f32, {Dim::of(2), Dim::of(3), Dim::of(5)}};
  const auto states = adafactor.states(OptimizerSettings("adafactor", "beta1=0.9"), matrix, ParameterKind::matrix);
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].type, (Type{DType::f32, {Dim::of(3)}}));
  EXPECT_EQ(states[1].type, (Type{DType::f32, {Dim::of(5)}}));
  EXPECT_EQ(states[2].type, (Type{DType::f32, matrix.shape}));
  const auto stacked = adafactor.states(OptimizerSettings("adafactor", ""), stack, ParameterKind::matrix);
  EXPECT_EQ(stacked[0].type, (Type{DType::f32, {Dim::of(2), Dim::of(3)}}));
  EXPECT_EQ(stacked[1].type, (Type{DType::f32, {Dim::of(2), Dim::of(5)}}));
}

// Each matrix of a stack has its own squares; one norm clips the whole.
TEST(Adafactor, UpdatesAStackAsTheReference) {
  const std::vector<int64_t> dims{3, 8, 17};
  const OptimizerSettings settings("adafactor", "scale_parameter=true");
  Stepper fast(settings, DType::f32, dims, ParameterKind::matrix, {.only = "simd"});
  Stepper plain(settings, DType::f32, dims, ParameterKind::matrix, {.only = "reference"});
  EXPECT_EQ(fast.node().op->update_grain(), 0);
  Tensor a = Tensor::random(DType::f32, dims, 1), b = a;
  for (uint64_t t = 1; t <= 3; ++t) {
    const Tensor gradient = Tensor::random(DType::f32, dims, t + 10);
    a = fast.step(a, gradient, 0.02, 0.1), b = plain.step(b, gradient, 0.02, 0.1);
  }
  for (int64_t i = 0; i < a.count(); ++i) ASSERT_NEAR(a.at(i), b.at(i), 1e-6);
}

TEST(Adafactor, LeavesOutAStepWithoutAFactor) {
  for (const char* which : {"simd", "reference"}) {
    Stepper stepper(OptimizerSettings("adafactor", ""), DType::f32, {2, 3}, ParameterKind::matrix, {.only = which});
    const Tensor half = Tensor::filled(DType::f32, {2, 3}, 0.5), gradient = Tensor::filled(DType::f32, {2, 3}, NAN);
    EXPECT_TRUE(stepper.step(half, gradient, 0.1, 0.1, NAN).same_bytes(half));
    EXPECT_EQ(stepper.state(0).at(1), 0);
  }
}

TEST(Adafactor, WarmsUpOnlyItsOwnRate) {
  EXPECT_THROW(OptimizerSettings("adafactor", "warmup_init=true"), Error);
  EXPECT_NO_THROW(OptimizerSettings("adafactor", "warmup_init=true,relative_step=true"));
}

}  // namespace
}  // namespace headroom::op_test
