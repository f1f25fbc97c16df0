// The router against a plain sort in double precision, and its gradient against finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "ops/moe/shape.h"
#include "routing.h"

namespace headroom::op_test {
namespace {

Attrs route_attrs(int64_t top_k, bool normalised) { return {{"top_k", top_k}, {"normalised", int64_t{normalised}}}; }

// Experts of one token, best first.
std::vector<int64_t> best_experts(const Vector& logits, int64_t chosen) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(chosen));
  return order;
}

// Weights of `experts`: softmax over all logits, then divided by their sum when normalised.
Vector weights_formula(const Vector& logits, const std::vector<int64_t>& experts, bool normalised) {
  double total = 0, chosen = 0;
  for (double logit : logits) total += std::exp(logit);
  for (int64_t e : experts) chosen += std::exp(logits[static_cast<size_t>(e)]) / total;
  Vector weights;
  for (int64_t e : experts)
    weights.push_back(std::exp(logits[static_cast<size_t>(e)]) / total / (normalised ? chosen : 1));
  return weights;
}

void expect_route(const Tensor& logits, int64_t top_k, bool normalised) {
  const RunResult result = run_op("moe_route", {logits}, route_attrs(top_k, normalised));
  const int64_t experts = logits.type().dims.back(), tokens = logits.count() / experts;
  const Vector all = values(logits);
  const Tensor &weights = result.outputs[0], &rows = result.outputs[1], &offsets = result.outputs[2];
  std::vector<std::vector<int64_t>> expert_of;
  for (int64_t token = 0; token < tokens; ++token) {
    const Vector row(all.begin() + token * experts, all.begin() + (token + 1) * experts);
    expert_of.push_back(best_experts(row, top_k));
    const Vector expected = weights_formula(row, expert_of.back(), normalised);
    for (int64_t slot = 0; slot < top_k; ++slot)
      EXPECT_NEAR(weights.at(token * top_k + slot), expected[static_cast<size_t>(slot)], 1e-6);
  }
  const Routing expected = routing_of(expert_of, experts);
  EXPECT_EQ(values(rows), values(expected.rows));
  EXPECT_EQ(values(offsets), values(expected.offsets));
}

TEST(MoeRoute, IsTheSortOfTheFormula) {
  for (const auto& [batch, seq, experts, top_k] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{2, 5, 8, 2}, {1, 1, 4, 4}, {3, 37, 128, 8}, {1, 9, 1, 1}})
    for (bool normalised : {false, true})
      for (DType dtype : {DType::f32, DType::bf16}) {
        SCOPED_TRACE(fmt::format("{}x{}, {} of {}, {}", batch, seq, top_k, experts, dtype_name(dtype)));
        expect_route(Tensor::random(dtype, {batch, seq, experts}, 5 + static_cast<uint64_t>(experts), 3), top_k,
                     normalised);
      }
}

TEST(MoeRoute, EqualLogitsGoToTheFirstExperts) {
  expect_route(Tensor::filled(DType::f32, {1, 6, 5}, 0.25), 3, true);
  expect_route(Tensor(DType::f32, {1, 1, 6}, {1, 2, 2, 0, 2, 1}), 4, true);
}

TEST(MoeRoute, LargeLogitsDoNotOverflow) {
  const RunResult result =
      run_op("moe_route", {Tensor(DType::f32, {1, 1, 3}, {3e38, 3e38, -3e38})}, route_attrs(2, false));
  EXPECT_EQ(result.outputs[0].at(0), 0.5);
  EXPECT_EQ(result.outputs[0].at(1), 0.5);
}

// Weights may become NaN; rows remain a permutation, so that no access is out of bounds.
TEST(MoeRoute, RowsAreAPermutationWhateverTheLogits) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const Tensor logits(DType::f32, {1, 4, 4},
                      {nan, nan, nan, nan, inf, inf, -inf, nan, -inf, -inf, -inf, -inf, nan, 1, nan, 2});
  for (int64_t top_k : {1, 3, 4}) {
    const RunResult result = run_op("moe_route", {logits}, route_attrs(top_k, true));
    Vector rows = values(result.outputs[1]);
    std::sort(rows.begin(), rows.end());
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], static_cast<double>(i));
    EXPECT_EQ(result.outputs[2].at(4), static_cast<double>(4 * top_k));
    for (int64_t token = 0; token < 4; ++token) {
      std::vector<int64_t> experts;
      for (int64_t slot = 0; slot < top_k; ++slot)
        experts.push_back(expert_of(result.outputs[2].as<int32_t>(), 4,
                                    static_cast<int32_t>(result.outputs[1].at(token * top_k + slot))));
      std::sort(experts.begin(), experts.end());
      EXPECT_EQ(std::unique(experts.begin(), experts.end()), experts.end()) << "a token has two rows of one expert";
    }
  }
  const RunResult ranked = run_op("moe_route", {logits}, route_attrs(2, true));
  EXPECT_EQ(expert_of(ranked.outputs[2].as<int32_t>(), 4, static_cast<int32_t>(ranked.outputs[1].at(6))), 3);
  EXPECT_EQ(expert_of(ranked.outputs[2].as<int32_t>(), 4, static_cast<int32_t>(ranked.outputs[1].at(7))), 1);
}

TEST(MoeRoute, TheTeamsSizeChangesNothing) {
  const Tensor logits = Tensor::random(DType::f32, {2, 67, 16}, 3, 2);
  const RunResult one = run_op("moe_route", {logits}, route_attrs(4, true));
  const Team team(3);
  const RunResult three = run_op("moe_route", {logits}, route_attrs(4, true));
  for (size_t i = 0; i < 3; ++i) expect_same_bytes(three.outputs[i], one.outputs[i]);
}

TEST(MoeRoute, GradientIsThatOfTheFormula) {
  struct Sizes {
    int64_t tokens, experts, top_k;
  };
  for (const Sizes& sizes : {Sizes{7, 8, 2}, Sizes{5, 5, 5}, Sizes{3, 16, 1}}) {
    const int64_t tokens = sizes.tokens, experts = sizes.experts, top_k = sizes.top_k;
    for (bool normalised : {false, true}) {
      SCOPED_TRACE(fmt::format("{} of {}, normalised {}", top_k, experts, normalised));
      const Tensor logits = Tensor::random(DType::f32, {1, tokens, experts}, 11, 2);
      const RunResult forward = run_op("moe_route", {logits}, route_attrs(top_k, normalised));
      const Tensor dweights = Tensor::random(DType::f32, {1, tokens, top_k}, 12);
      const Vector start = values(logits);
      const Vector expected = differences(start, values(dweights), [&](const Vector& x) {
        Vector weights;
        for (int64_t token = 0; token < tokens; ++token) {
          const Vector then(start.begin() + token * experts, start.begin() + (token + 1) * experts);
          const Vector now(x.begin() + token * experts, x.begin() + (token + 1) * experts);
          for (double weight : weights_formula(now, best_experts(then, top_k), normalised)) weights.push_back(weight);
        }
        return weights;
      });
      for (bool use_may : {false, true}) {
        RunOptions options;
        options.use_may = use_may;
        const RunResult result = run_op("moe_route_grad", {logits, dweights, forward.outputs[1], forward.outputs[2]},
                                        {{"normalised", int64_t{normalised}}}, options);
        expect_near(result.outputs[0], expected, 2e-6, 1e-5);
      }
    }
  }
}

TEST(MoeRoute, RulesAreChecked) {
  const Tensor logits = Tensor::random(DType::f32, {1, 3, 4}, 1);
  EXPECT_THROW(run_op("moe_route", {logits}, route_attrs(5, true)), InternalError);
  EXPECT_THROW(run_op("moe_route", {logits}, route_attrs(0, true)), InternalError);
  EXPECT_THROW(run_op("moe_route", {Tensor(DType::i32, {1, 3, 4})}, route_attrs(2, true)), InternalError);
  EXPECT_THROW(run_op("moe_route_grad",
                      {logits, Tensor(DType::f32, {1, 3, 2}), Tensor(DType::i32, {1, 2, 2}), Tensor(DType::i32, {5})}),
               InternalError);
}

}  // namespace
}  // namespace headroom::op_test
