// Drawn labels: their frequencies, what decides a draw and what does not.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../ops_support/op_harness.h"
#include "ops/draw_labels/shape.h"
#include "ops/step_scalars.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

Tensor drawing_hyper(double labels, uint64_t seed = 5, uint32_t step = 3) {
  Tensor hyper = Tensor::filled(DType::f32, {kHyperCount}, 0);
  std::memcpy(hyper.as<float>() + kSeed, &seed, sizeof(seed));
  std::memcpy(hyper.as<float>() + kStep, &step, sizeof(step));
  hyper.set(kDrawnLabels, labels);
  return hyper;
}

Attrs drawing_attrs(int64_t shift, std::string layout = "out_in", double softcap = 0, int64_t bias = 0) {
  return {
      {"layout", std::move(layout)}, {"shift", shift}, {"softcap", softcap}, {"bias", bias}, {"interval", int64_t{10}}};
}

// Every third label is ignored.
Tensor thinned_labels(int64_t batch, int64_t sequence, int64_t vocabulary) {
  Tensor labels(DType::i32, {batch, sequence});
  for (int64_t i = 0; i < labels.count(); ++i)
    labels.set(i, i % 3 == 2 ? -100 : static_cast<double>(i * 7 % vocabulary));
  return labels;
}

std::vector<Tensor> drawing_inputs(DType dtype, int64_t batch, int64_t sequence, int64_t hidden, int64_t vocabulary,
                                   const Tensor& hyper) {
  return {Tensor::random(dtype, {batch, sequence, hidden}, 1), Tensor::random(dtype, {vocabulary, hidden}, 2),
          thinned_labels(batch, sequence, vocabulary), hyper};
}

Tensor drawn(const std::vector<Tensor>& inputs, const Attrs& attrs, std::string only = {}, int64_t trip = 0) {
  RunOptions options;
  options.only = std::move(only);
  options.trip = trip;
  return op_test::run_op("draw_labels", inputs, attrs, options).outputs.at(0);
}

// The same logits in every row: the frequencies are those of their softmax (chi-square, four degrees of freedom).
TEST(DrawLabels, DrawsFromTheSoftmax) {
  constexpr int64_t kRows = 20000, kEntries = 5;
  const std::vector<double> logits{0.5, -1, 2, 0, -3};
  const Tensor hyper = drawing_hyper(1);
  for (const double softcap : {0.0, 1.5}) {
    const Tensor found =
        drawn({Tensor::filled(DType::f32, {kRows / 10, 10, 1}, 1), Tensor(DType::f32, {kEntries, 1}, logits),
               Tensor::filled(DType::i32, {kRows / 10, 10}, 0), hyper},
              drawing_attrs(0, "out_in", softcap));
    std::vector<double> shares, counts(kEntries, 0);
    for (const double logit : logits)
      shares.push_back(std::exp(softcap > 0 ? softcap * std::tanh(logit / softcap) : logit));
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (int64_t i = 0; i < kRows; ++i) ++counts.at(static_cast<size_t>(found.at(i)));
    double distance = 0;
    for (size_t i = 0; i < kEntries; ++i) {
      const double expected = kRows * shares[i] / sum;
      distance += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(distance, 25) << softcap;
  }
}

TEST(DrawLabels, KeepsTheLabelsInAStep) {
  const std::vector<Tensor> inputs = drawing_inputs(DType::f32, 2, 7, 6, 31, drawing_hyper(0));
  op_test::expect_same_bytes(drawn(inputs, drawing_attrs(1)), inputs[DrawInputs::labels]);
}

TEST(DrawLabels, KeepsWhatNoRowPredicts) {
  for (const int64_t shift : {0, 1}) {
    const std::vector<Tensor> inputs = drawing_inputs(DType::f32, 3, 7, 6, 31, drawing_hyper(9));
    const Tensor found = drawn(inputs, drawing_attrs(shift));
    int64_t changed = 0;
    for (int64_t i = 0; i < found.count(); ++i) {
      const double given = inputs[DrawInputs::labels].at(i);
      if (given == -100 || (shift != 0 && i % 7 == 0))
        EXPECT_EQ(found.at(i), given) << i;
      else
        changed += found.at(i) != given;
    }
    EXPECT_GT(changed, 8);
  }
}

TEST(DrawLabels, EveryKernelDrawsAlike) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t bias : {0, 1}) {
      std::vector<Tensor> inputs = drawing_inputs(dtype, 3, 11, 32, 131, drawing_hyper(9));
      if (bias != 0) inputs.push_back(Tensor::random(DType::f32, {131}, 4));
      const Attrs attrs = drawing_attrs(1, "out_in", bias != 0 ? 2.0 : 0.0, bias);
      const Tensor expected = drawn(inputs, attrs, "reference");
      for (const char* implementation : {"amx", "onednn", "simd"})
        if (op_test::accepts("draw_labels", inputs, attrs, implementation))
          op_test::expect_same_bytes(drawn(inputs, attrs, implementation), expected);
    }
}

TEST(DrawLabels, TakesAWeightByColumns) {
  std::vector<Tensor> inputs = drawing_inputs(DType::f32, 2, 5, 6, 31, drawing_hyper(9));
  const Tensor expected = drawn(inputs, drawing_attrs(1));
  Tensor columns(DType::f32, {6, 31});
  for (int64_t i = 0; i < 31; ++i)
    for (int64_t j = 0; j < 6; ++j) columns.set(j * 31 + i, inputs[DrawInputs::weight].at(i * 6 + j));
  inputs[DrawInputs::weight] = columns;
  op_test::expect_same_bytes(drawn(inputs, drawing_attrs(1, "in_out")), expected);
}

TEST(DrawLabels, DrawAlikeInChunks) {
  const std::vector<Tensor> inputs = drawing_inputs(DType::f32, 3, 7, 6, 31, drawing_hyper(9));
  const Tensor whole = drawn(inputs, drawing_attrs(1));
  for (const int64_t chunk : {1, 4, 20, 100})
    op_test::expect_same_bytes(drawn(inputs, drawing_attrs(1).set("chunk", chunk)), whole);
}

// As in micro-batches of one row, and of four.
TEST(DrawLabels, DoNotDependOnTheDivisionOfTheBatch) {
  const std::vector<Tensor> inputs = drawing_inputs(DType::f32, 4, 9, 6, 31, drawing_hyper(9));
  const Tensor whole = drawn(inputs, drawing_attrs(1));
  for (int64_t row = 0; row < 4; ++row) {
    Tensor x(DType::f32, {1, 9, 6}), labels(DType::i32, {1, 9});
    for (int64_t i = 0; i < x.count(); ++i) x.set(i, inputs[DrawInputs::x].at(row * x.count() + i));
    for (int64_t i = 0; i < 9; ++i) labels.set(i, inputs[DrawInputs::labels].at(row * 9 + i));
    const Tensor part =
        drawn({x, inputs[DrawInputs::weight], labels, inputs[DrawInputs::hyper]}, drawing_attrs(1), {}, row);
    for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(part.at(i), whole.at(row * 9 + i)) << row << " " << i;
  }
}

TEST(DrawLabels, DependOnSeedAndStep) {
  std::vector<Tensor> inputs = drawing_inputs(DType::f32, 4, 9, 6, 31, drawing_hyper(9));
  const Tensor first = drawn(inputs, drawing_attrs(1));
  op_test::expect_same_bytes(drawn(inputs, drawing_attrs(1)), first);
  inputs[DrawInputs::hyper] = drawing_hyper(9, 6, 3);
  EXPECT_FALSE(drawn(inputs, drawing_attrs(1)).same_bytes(first));
  inputs[DrawInputs::hyper] = drawing_hyper(9, 5, 4);
  EXPECT_FALSE(drawn(inputs, drawing_attrs(1)).same_bytes(first));
}

}  // namespace
}  // namespace headroom
