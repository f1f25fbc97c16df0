// Muon against its iteration in double precision (torch.optim.Muon): matrices wide, tall and square, in every kernel.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "stepper.h"

namespace headroom::op_test {
namespace {

// A dense matrix in f64.
struct Matrix {
  size_t rows, cols;
  std::vector<double> at;

  Matrix(size_t r, size_t c) : rows(r), cols(c), at(r * c, 0) {}
  Matrix transposed() const {
    Matrix t(cols, rows);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < cols; ++c) t.at[c * rows + r] = at[r * cols + c];
    return t;
  }
  Matrix times(const Matrix& b) const {
    Matrix product(rows, b.cols);
    for (size_t r = 0; r < rows; ++r)
      for (size_t k = 0; k < cols; ++k)
        for (size_t c = 0; c < b.cols; ++c) product.at[r * b.cols + c] += at[r * cols + k] * b.at[k * b.cols + c];
    return product;
  }
  // a this + b other
  Matrix plus(double a, double b, const Matrix& other) const {
    Matrix sum(rows, cols);
    for (size_t i = 0; i < at.size(); ++i) sum.at[i] = a * at[i] + b * other.at[i];
    return sum;
  }
};

Matrix orthogonal(const Matrix& of, int steps) {
  double squares = 0;
  for (const double v : of.at) squares += v * v;
  Matrix x = of.plus(1 / std::sqrt(squares), 0, of);
  for (int step = 0; step < steps; ++step) {
    const Matrix gram = x.times(x.transposed());
    x = gram.plus(-4.7750, 2.0315, gram.times(gram)).times(x).plus(1, 3.4445, x);
  }
  return x;
}

struct PlainMuon {
  double momentum, factor;
  bool nesterov;
  int steps;
  Matrix w, buffer;

  void step(const Matrix& g, double lr, double decay) {
    buffer = buffer.plus(momentum, 1 - momentum, g);
    const Matrix move = orthogonal(nesterov ? g.plus(1 - momentum, momentum, buffer) : buffer, steps);
    w = w.plus(1 - lr * decay, -lr * factor, move);
  }
};

Matrix matrix_of(const Tensor& tensor, size_t rows, size_t cols) {
  Matrix matrix(rows, cols);
  for (size_t i = 0; i < matrix.at.size(); ++i) matrix.at[i] = tensor.at(static_cast<int64_t>(i));
  return matrix;
}

struct MuonCase {
  const char* args;
  double momentum = 0.95;
  bool nesterov = true, matches = true;
  int steps = 5;
};
const MuonCase kMuonCases[] = {{"", 0.95, true, true, 5},
                               {"momentum=0.5,nesterov=false", 0.5, false, true, 5},
                               {"match_rms_adamw=false,ns_steps=3", 0.95, true, false, 3}};

// Products round to bf16, so that a step's error is about one percent.
void expect_muon(const MuonCase& of, const char* which, int64_t rows, int64_t cols) {
  const size_t m = static_cast<size_t>(rows), n = static_cast<size_t>(cols);
  Stepper stepper(OptimizerSettings("muon", of.args), DType::f32, {rows, cols}, ParameterKind::matrix, {.only = which});
  Tensor weight = Tensor::random(DType::f32, {rows, cols}, 1);
  const double tall = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(cols)));
  const double factor = of.matches ? 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols))) : tall;
  PlainMuon plain{of.momentum, factor, of.nesterov, of.steps, matrix_of(weight, m, n), Matrix(m, n)};
  for (uint64_t t = 1; t <= 3; ++t) {
    const Tensor gradient = Tensor::random(DType::f32, {rows, cols}, t + 10);
    weight = stepper.step(weight, gradient, 0.01, 0.1);
    plain.step(matrix_of(gradient, m, n), static_cast<double>(0.01f), static_cast<double>(0.1f));
  }
  double error = 0;
  for (int64_t i = 0; i < weight.count(); ++i)
    error += std::pow(weight.at(i) - plain.w.at[static_cast<size_t>(i)], 2) / static_cast<double>(weight.count());
  const double step = 0.01 * factor / std::sqrt(static_cast<double>(std::max(rows, cols)));  // its root mean square
  EXPECT_LT(std::sqrt(error), 3 * 0.02 * step);
  for (int64_t i = 0; i < weight.count(); ++i)
    ASSERT_NEAR(stepper.state(0).at(i), plain.buffer.at[static_cast<size_t>(i)], 1e-6);
}

TEST(Muon, FollowsTheIteration) {
  for (const MuonCase& of : kMuonCases)
    for (const char* which : {"reference", "simd", ""})
      for (const auto& [rows, cols] : {std::pair{24, 40}, {40, 24}, {33, 33}, {1, 9}, {64, 192}}) {
        SCOPED_TRACE(fmt::format("{} {} {} x {}", of.args, which, rows, cols));
        expect_muon(of, which, rows, cols);
      }
}

TEST(Muon, IsForMatricesAndLeavesTheRestToAdamW) {
  const OptimizerSettings settings("muon", "");
  const Type matrix{DType::bf16, {Dim::of(6), Dim::of(4)}};
  const Optimizer& muon = find_optimizer("muon");
  EXPECT_EQ(muon.states(settings, matrix, ParameterKind::matrix).size(), 1u);
  for (const ParameterKind kind : {ParameterKind::embedding, ParameterKind::head, ParameterKind::vector}) {
    EXPECT_EQ(muon.states(settings, matrix, kind).size(), 2u);
    Stepper stepper(settings, DType::f32, {6, 4}, kind);
    EXPECT_EQ(op_name(*stepper.node().op), "adamw");
    Stepper adamw(OptimizerSettings(), DType::f32, {6, 4}, kind);
    const Tensor weight = Tensor::random(DType::f32, {6, 4}, 1), gradient = Tensor::random(DType::f32, {6, 4}, 2);
    EXPECT_TRUE(stepper.step(weight, gradient, 0.01, 0.1).same_bytes(adamw.step(weight, gradient, 0.01, 0.1)));
  }
}

// Each matrix of a stack separately.
TEST(Muon, UpdatesAStackMatrixByMatrix) {
  const OptimizerSettings settings("muon", "");
  Stepper stack(settings, DType::f32, {2, 8, 17}, ParameterKind::matrix);
  Stepper alone(settings, DType::f32, {8, 17}, ParameterKind::matrix);
  EXPECT_EQ(stack.node().op->update_grain(), 0);
  const Tensor weight = Tensor::random(DType::f32, {2, 8, 17}, 1), gradient = Tensor::random(DType::f32, {2, 8, 17}, 2);
  const Tensor both = stack.step(weight, gradient, 0.01, 0.1);
  Tensor w(DType::f32, {8, 17}), g(DType::f32, {8, 17});
  for (int64_t i = 0; i < 136; ++i) w.set(i, weight.at(136 + i)), g.set(i, gradient.at(136 + i));
  const Tensor second = alone.step(w, g, 0.01, 0.1);
  for (int64_t i = 0; i < 136; ++i) ASSERT_EQ(both.at(136 + i), second.at(i));
}

TEST(Muon, LeavesOutAStepWithoutAFactor) {
  Stepper stepper(OptimizerSettings("muon", ""), DType::f32, {2, 3}, ParameterKind::matrix);
  const Tensor half = Tensor::filled(DType::f32, {2, 3}, 0.5), gradient = Tensor::filled(DType::f32, {2, 3}, NAN);
  EXPECT_TRUE(stepper.step(half, gradient, 0.1, 0.1, NAN).same_bytes(half));
  EXPECT_EQ(stepper.state(0).at(1), 0);
}

TEST(Muon, TakesWholeNumbersOfIterations) { EXPECT_THROW(OptimizerSettings("muon", "ns_steps=2.5"), Error); }

}  // namespace
}  // namespace headroom::op_test
