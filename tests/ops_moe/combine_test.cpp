// Copies of tokens in the order of their experts, and the weighted sum of the results.
#include <gtest/gtest.h>

#include "base/error.h"
#include "routing.h"

namespace headroom::op_test {
namespace {

Vector combine_formula(const Vector& z, const Routing& routing, const Vector& weights, const Vector& residual,
                       int64_t width) {
  Vector y(static_cast<size_t>(routing.tokens * width));
  for (int64_t i = 0; i < routing.tokens * width; ++i) {
    double sum = residual.empty() ? 0 : residual[static_cast<size_t>(i)];
    for (int64_t slot = 0; slot < routing.chosen; ++slot) {
      const int64_t pair = i / width * routing.chosen + slot;
      const auto row = static_cast<int64_t>(routing.rows.at(pair));
      sum +=
          z[static_cast<size_t>(row * width + i % width)] * (weights.empty() ? 1 : weights[static_cast<size_t>(pair)]);
    }
    y[static_cast<size_t>(i)] = sum;
  }
  return y;
}

struct Case {
  Case(DType dtype, int64_t tokens, int64_t chosen, int64_t experts, int64_t width)
      : routing(spread_routing(tokens, chosen, experts)),
        z(Tensor::random(dtype, {1, tokens, chosen, width}, 21)),
        weights(Tensor::random(DType::f32, {1, tokens, chosen}, 22)),
        residual(Tensor::random(DType::f32, {1, tokens, width}, 23)),
        width(width) {}
  Routing routing;
  Tensor z, weights, residual;
  int64_t width;
};

std::vector<Case> cases(DType dtype) {
  std::vector<Case> list;
  list.emplace_back(dtype, 5, 2, 4, 48);
  list.emplace_back(dtype, 1, 4, 4, 7);
  list.emplace_back(dtype, 33, 8, 16, 131);
  list.emplace_back(dtype, 3, 1, 2, 1);
  return list;
}

TEST(MoeDispatch, CopiesEachTokenToItsRows) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (const Case& c : cases(dtype)) {
      const Tensor x = Tensor::random(dtype, {1, c.routing.tokens, c.width}, 31);
      const RunResult result = run_op("moe_dispatch", {x, c.routing.rows});
      for (int64_t pair = 0; pair < c.routing.tokens * c.routing.chosen; ++pair)
        for (int64_t i = 0; i < c.width; ++i)
          ASSERT_EQ(result.outputs[0].at(static_cast<int64_t>(c.routing.rows.at(pair)) * c.width + i),
                    x.at(pair / c.routing.chosen * c.width + i));
    }
}

TEST(MoeCombine, IsTheFormula) {
  for_each_target([](const std::string&) {
    for (DType dtype : {DType::f32, DType::bf16})
      for (const Case& c : cases(dtype))
        for (const char* implementation : {"simd", "reference"}) {
          RunOptions options;
          options.only = implementation;
          const double rounding = dtype == DType::bf16 ? 1.0 / 128 : 0;
          const RunResult plain = run_op("moe_combine", {c.z, c.routing.rows}, {}, options);
          EXPECT_EQ(plain.outputs[0].type().dtype, dtype);
          expect_near(plain.outputs[0], combine_formula(values(c.z), c.routing, {}, {}, c.width), 1e-6,
                      1e-6 + rounding);
          const RunResult weighted =
              run_op("moe_combine", {c.z, c.routing.rows, c.weights}, {{"weighted", int64_t{1}}}, options);
          expect_near(weighted.outputs[0], combine_formula(values(c.z), c.routing, values(c.weights), {}, c.width),
                      1e-6, 1e-6 + rounding);
          if (dtype == DType::bf16) {
            const Tensor narrow = Tensor::random(DType::bf16, {1, c.routing.tokens, c.width}, 24);
            const RunResult added = run_op("moe_combine", {c.z, c.routing.rows, c.weights, narrow},
                                           {{"weighted", int64_t{1}}, {"residual", int64_t{1}}}, options);
            EXPECT_EQ(added.outputs[0].type().dtype, DType::bf16);
            expect_near(added.outputs[0],
                        combine_formula(values(c.z), c.routing, values(c.weights), values(narrow), c.width), 1e-6,
                        1e-6 + rounding);
          }
          for (bool use_may : {false, true}) {
            options.use_may = use_may;
            const RunResult added = run_op("moe_combine", {c.z, c.routing.rows, c.weights, c.residual},
                                           {{"weighted", int64_t{1}}, {"residual", int64_t{1}}}, options);
            EXPECT_EQ(added.outputs[0].type().dtype, DType::f32);
            expect_near(added.outputs[0],
                        combine_formula(values(c.z), c.routing, values(c.weights), values(c.residual), c.width), 2e-6,
                        1e-6);
          }
        }
  });
}

TEST(MoeCombine, GradientIsThatOfTheFormula) {
  for_each_target([](const std::string&) {
    for (DType dtype : {DType::f32, DType::bf16})
      for (const Case& c : cases(dtype))
        for (const char* implementation : {"simd", "reference"})
          for (bool use_may : {false, true}) {
            if (c.z.count() > 2000) continue;
            RunOptions options;
            options.only = implementation;
            options.use_may = use_may;
            const Tensor dy = Tensor::random(DType::f32, {1, c.routing.tokens, c.width}, 41);
            const RunResult result = run_op("moe_combine_grad", {dy, c.z, c.routing.rows, c.weights}, {}, options);
            const Vector dz = differences(values(c.z), values(dy), [&](const Vector& z) {
              return combine_formula(z, c.routing, values(c.weights), {}, c.width);
            });
            const Vector dweights = differences(values(c.weights), values(dy), [&](const Vector& weights) {
              return combine_formula(values(c.z), c.routing, weights, {}, c.width);
            });
            expect_near(result.outputs[0], dz, 1e-6, dtype == DType::bf16 ? 1.0 / 128 : 1e-6);
            expect_near(result.outputs[1], dweights, 2e-6, 1e-6);
          }
  });
}

TEST(MoeCombine, FastIsTheReferenceOnManyTokens) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Case c(dtype, 33, 8, 16, 131);
    const Tensor dy = Tensor::random(dtype, {1, 33, 131}, 42);
    RunOptions fast, plain;
    fast.only = "simd";
    plain.only = "reference";
    const std::vector<Tensor> inputs{dy, c.z, c.routing.rows, c.weights};
    const RunResult a = run_op("moe_combine_grad", inputs, {}, fast), b = run_op("moe_combine_grad", inputs, {}, plain);
    expect_close(a.outputs[0], b.outputs[0], 1e-6, dtype == DType::bf16 ? 1.0 / 128 : 1e-6);
    expect_close(a.outputs[1], b.outputs[1], 1e-5, 1e-5);
    const Team team(3);
    const RunResult again = run_op("moe_combine_grad", inputs, {}, fast);
    for (size_t i = 0; i < 2; ++i) expect_same_bytes(again.outputs[i], a.outputs[i]);
  }
}

TEST(MoeCombine, RulesAreChecked) {
  const Case c(DType::f32, 5, 2, 4, 8);
  EXPECT_THROW(run_op("moe_combine", {c.z, c.routing.offsets}), InternalError);
  EXPECT_THROW(run_op("moe_combine", {c.z, c.routing.rows}, {{"weighted", int64_t{1}}}), InternalError);
  EXPECT_THROW(run_op("moe_dispatch", {Tensor(DType::f32, {1, 4, 8}), c.routing.rows}), InternalError);
  EXPECT_THROW(run_op("moe_dispatch", {Tensor(DType::f32, {1, 5, 8}), c.weights}), InternalError);
}

}  // namespace
}  // namespace headroom::op_test
