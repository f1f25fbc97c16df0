// The load-balancing loss against its formula in double precision, and its gradient against finite differences.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "routing.h"

namespace headroom::op_test {
namespace {

struct Layer {
  Tensor logits, rows, offsets;
};

constexpr int64_t kBatch = 3, kSeq = 7, kExperts = 5, kChosen = 2;
const std::vector<double> kLengths{7, 4, 0};  // tokens before the padding

Layer layer(uint64_t seed, DType dtype = DType::f32) {
  Layer made{Tensor::random(dtype, {kBatch, kSeq, kExperts}, seed, 2), Tensor(DType::i32, {1}),
             Tensor(DType::i32, {1})};
  const RunResult routed = run_op("moe_route", {made.logits}, {{"top_k", kChosen}, {"normalised", int64_t{0}}});
  made.rows = routed.outputs[1];
  made.offsets = routed.outputs[2];
  return made;
}

bool is_real(int64_t token) { return static_cast<double>(token % kSeq) < kLengths[static_cast<size_t>(token / kSeq)]; }

// Counts, probabilities and tokens of a layer; the logits `chosen_by` decide which experts are chosen.
Vector sums_of(const Vector& logits, const Vector& chosen_by) {
  Vector sums(2 * kExperts + 1);
  for (int64_t token = 0; token < kBatch * kSeq; ++token) {
    if (!is_real(token)) continue;
    double total = 0;
    const auto at = [&](const Vector& values, int64_t e) { return values[static_cast<size_t>(token * kExperts + e)]; };
    for (int64_t e = 0; e < kExperts; ++e) total += std::exp(at(logits, e));
    for (int64_t e = 0; e < kExperts; ++e) {
      sums[static_cast<size_t>(kExperts + e)] += std::exp(at(logits, e)) / total;
      int64_t larger = 0;
      for (int64_t other = 0; other < kExperts; ++other) larger += at(chosen_by, other) > at(chosen_by, e);
      if (larger < kChosen) sums[static_cast<size_t>(e)] += 1;
    }
    sums.back() += 1;
  }
  return sums;
}

double loss_of(const Vector& sums) {
  double product = 0;
  for (size_t e = 0; e < kExperts; ++e) product += sums[e] * sums[kExperts + e];
  return kExperts * product / (sums.back() * sums.back());
}

Tensor lengths() { return Tensor(DType::i32, {kBatch}, kLengths); }

Tensor balance(const Layer& layer, const Tensor& before) {
  return run_op("moe_balance", {layer.logits, layer.rows, layer.offsets, lengths(), before}).outputs[0];
}

Tensor begin() { return run_op("moe_balance_begin", {}, {{"experts", kExperts}}).outputs[0]; }

TEST(MoeBalance, SumsOfTwoLayersAreTheFormulas) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Layer first = layer(3, dtype), second = layer(4, dtype);
    const Tensor sums = balance(second, balance(first, begin()));
    Vector expected = sums_of(values(first.logits), values(first.logits));
    const Vector more = sums_of(values(second.logits), values(second.logits));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += more[i];
    expect_near(sums, expected, 1e-5, 1e-5);
    EXPECT_EQ(expected.back(), 22);
  }
}

TEST(MoeBalance, TheTeamsSizeChangesNothing) {
  const Layer one = layer(9);
  const Tensor alone = balance(one, begin());
  const Team team(3);
  expect_same_bytes(balance(one, begin()), alone);
}

// labels with 5 targets: the first position of a row is not one
Tensor labels() {
  Tensor made = Tensor::filled(DType::i32, {kBatch, kSeq}, -100);
  for (int64_t at : {0, 1, 2, 6, 7, 9, 10}) made.set(at, 3);
  return made;
}

TEST(MoeBalance, LossIsWeightedByTheTargets) {
  const Tensor sums = balance(layer(5), begin());
  const Tensor scale = Tensor::filled(DType::f32, {1}, 0.125);
  const double expected = 0.25 * loss_of(values(sums)) * 5;
  for (const auto& [accumulate, trip, before] :
       {std::tuple<const char*, int64_t, double>{"carried", 0, 0}, {"carried", 1, 7}, {"always", 0, 7}}) {
    const Tensor losses(DType::f64, {3}, {7, 7, 7});
    const RunResult result = run_op("moe_balance_loss", {sums, labels(), losses, scale},
                                    {{"coefficient", 0.25}, {"accumulate", accumulate}}, {.only = {}, .trip = trip});
    EXPECT_NEAR(result.outputs[0].at(0), before + expected, 1e-6);
    EXPECT_EQ(result.outputs[0].at(1), before);
    EXPECT_EQ(result.outputs[0].at(2), before);
  }
}

TEST(MoeBalance, WithoutTokensThereIsNoLoss) {
  const Tensor scale = Tensor::filled(DType::f32, {1}, 1);
  const Tensor losses(DType::f64, {2}, {0, 0});
  EXPECT_EQ(run_op("moe_balance_loss", {begin(), labels(), losses, scale}, {{"coefficient", 1.0}}).outputs[0].at(0), 0);
  for (double value :
       values(run_op("moe_balance_loss_grad", {begin(), labels(), scale}, {{"coefficient", 1.0}}).outputs[0]))
    EXPECT_EQ(value, 0);
}

TEST(MoeBalance, GradientIsThatOfTheFormula) {
  const Layer first = layer(6);
  const Tensor sums = balance(first, begin());
  const Tensor scale = Tensor::filled(DType::f32, {1}, 0.5);
  const Tensor dsums = run_op("moe_balance_loss_grad", {sums, labels(), scale}, {{"coefficient", 3.0}}).outputs[0];
  const Vector start = values(first.logits);
  const Vector expected =
      differences(start, {0.5 * 5 * 3}, [&](const Vector& logits) { return Vector{loss_of(sums_of(logits, start))}; });
  for (bool use_may : {false, true}) {
    RunOptions options;
    options.use_may = use_may;
    expect_near(run_op("moe_balance_grad", {first.logits, lengths(), dsums}, {}, options).outputs[0], expected, 2e-6,
                1e-5);
  }
}

TEST(MoeBalance, RulesAreChecked) {
  const Layer one = layer(7);
  EXPECT_THROW(run_op("moe_balance_begin", {}, {{"experts", int64_t{0}}}), InternalError);
  EXPECT_THROW(balance(one, Tensor(DType::f32, {9})), InternalError);
  EXPECT_THROW(run_op("moe_balance", {one.logits, one.rows, one.offsets, Tensor(DType::i32, {2}), begin()}),
               InternalError);
  EXPECT_THROW(run_op("moe_balance_loss", {begin(), labels(), Tensor(DType::f64, {2}), Tensor(DType::f32, {1})}),
               InternalError)
      << "no coefficient";
  EXPECT_THROW(run_op("moe_balance_grad", {one.logits, lengths(), Tensor(DType::f32, {4})}), InternalError);
}

}  // namespace
}  // namespace headroom::op_test
