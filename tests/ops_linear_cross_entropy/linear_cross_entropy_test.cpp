#include <gtest/gtest.h>

#include "../ops_support/op_harness.h"
#include "base/error.h"
#include "hwy/targets.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

constexpr double kScale = 0.25;

struct Case {
  int64_t batch, sequence, hidden, vocabulary, chunk;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << "x" << c.sequence << " hidden " << c.hidden << " vocabulary " << c.vocabulary << " chunk "
             << c.chunk;
}

// The formula's results, in double.
struct Expected {
  double loss = 0;
  double targets = 0;
  Tensor dx, dw;
};

Expected expected_loss(const Tensor& x, const Tensor& w, const Tensor& labels, bool out_in) {
  const int64_t sequence = labels.type().dims.back(), hidden = x.type().dims.back();
  const int64_t vocabulary = w.type().dims[out_in ? 0 : 1];
  const auto at_w = [&](int64_t v, int64_t h) { return out_in ? v * hidden + h : h * vocabulary + v; };
  Expected expected{0, 0, Tensor::filled(DType::f64, x.type().dims, 0), Tensor::filled(DType::f64, w.type().dims, 0)};
  for (int64_t row = 0; row < labels.count(); ++row) {
    if (row % sequence == sequence - 1 || labels.at(row + 1) == -100) continue;
    const int64_t target = static_cast<int64_t>(labels.at(row + 1));
    std::vector<double> logits(static_cast<size_t>(vocabulary), 0.0);
    double largest = -1e300, sum = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      double& logit = logits[static_cast<size_t>(v)];
      for (int64_t h = 0; h < hidden; ++h) logit += x.at(row * hidden + h) * w.at(at_w(v, h));
      largest = std::max(largest, logit);
    }
    for (double logit : logits) sum += std::exp(logit - largest);
    expected.loss += largest + std::log(sum) - logits[static_cast<size_t>(target)];
    expected.targets += 1;
    for (int64_t v = 0; v < vocabulary; ++v) {
      const double slope = kScale * (std::exp(logits[static_cast<size_t>(v)] - largest) / sum - (v == target ? 1 : 0));
      for (int64_t h = 0; h < hidden; ++h) {
        expected.dx.set(row * hidden + h, expected.dx.at(row * hidden + h) + slope * w.at(at_w(v, h)));
        expected.dw.set(at_w(v, h), expected.dw.at(at_w(v, h)) + slope * x.at(row * hidden + h));
      }
    }
  }
  return expected;
}

// Random labels, a third of them ignored; in some cases a range without any target.
Tensor some_labels(int64_t batch, int64_t sequence, int64_t vocabulary) {
  const Tensor noise = Tensor::random(DType::f64, {batch, sequence}, 9);
  Tensor labels(DType::i32, {batch, sequence});
  for (int64_t i = 0; i < labels.count(); ++i) {
    const bool ignored = noise.at(i) > 0.33 || (i >= sequence / 2 && i < sequence);
    labels.set(i, ignored ? -100 : std::floor((noise.at(i) + 1) / 2 * static_cast<double>(vocabulary)));
  }
  return labels;
}

const char* const kImplementations[] = {"amx_tiles", "amx", "onednn", "simd", "reference"};

class LinearCrossEntropy : public ::testing::TestWithParam<Case> {};

TEST_P(LinearCrossEntropy, LossMatchesTheFormula) {
  const auto [batch, sequence, hidden, vocabulary, chunk] = GetParam();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool out_in : {true, false}) {
      const std::vector<int64_t> w_dims =
          out_in ? std::vector<int64_t>{vocabulary, hidden} : std::vector<int64_t>{hidden, vocabulary};
      const std::vector<Tensor> inputs{Tensor::random(dtype, {batch, sequence, hidden}, 1, 2.0),
                                       Tensor::random(dtype, w_dims, 2), some_labels(batch, sequence, vocabulary),
                                       Tensor(DType::f64, {2}, {10.0, 3.0})};
      const Expected expected = expected_loss(inputs[0], inputs[1], inputs[2], out_in);
      for (const char* implementation : kImplementations)
        for (int64_t trip : {0, 1}) {
          const Attrs attrs{{"layout", out_in ? "out_in" : "in_out"}, {"chunk", chunk}, {"accumulate", "carried"}};
          if (!op_test::accepts("linear_cross_entropy", inputs, attrs, implementation)) continue;
          SCOPED_TRACE(fmt::format("{} {} out_in {} trip {}", implementation, dtype_name(dtype), out_in, trip));
          RunOptions options;
          options.only = implementation;
          options.trip = trip;
          const Tensor sums = op_test::run_op("linear_cross_entropy", inputs, attrs, options).outputs[0];
          const double before = trip == 0 ? 0 : 10;
          EXPECT_NEAR(sums.at(0), before + expected.loss, 2e-5 * (1 + expected.loss));
          EXPECT_EQ(sums.at(1), (trip == 0 ? 0 : 3) + expected.targets);
        }
    }
}

TEST_P(LinearCrossEntropy, GradientMatchesTheFormula) {
  const auto [batch, sequence, hidden, vocabulary, chunk] = GetParam();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool out_in : {true, false})
      for (const bool trains : {true, false}) {
        const std::vector<int64_t> w_dims =
            out_in ? std::vector<int64_t>{vocabulary, hidden} : std::vector<int64_t>{hidden, vocabulary};
        std::vector<Tensor> inputs{Tensor::random(dtype, {batch, sequence, hidden}, 1, 2.0),
                                   Tensor::random(dtype, w_dims, 2), some_labels(batch, sequence, vocabulary),
                                   Tensor(DType::f32, {1}, {kScale}), Tensor(DType::f64, {2}, {10.0, 3.0})};
        if (trains) inputs.push_back(Tensor::random(DType::f32, w_dims, 5));
        const Expected expected = expected_loss(inputs[0], inputs[1], inputs[2], out_in);
        for (const char* implementation : kImplementations)
          for (int64_t trip : {0, 1}) {
            const Attrs attrs{{"layout", out_in ? "out_in" : "in_out"},
                              {"chunk", chunk},
                              {"loss_accumulate", "carried"},
                              {"accumulate", "carried"},
                              {"train_weight", int64_t{trains}}};
            if (!op_test::accepts("linear_cross_entropy_grad", inputs, attrs, implementation)) continue;
            SCOPED_TRACE(fmt::format("{} {} out_in {} trip {}", implementation, dtype_name(dtype), out_in, trip));
            RunOptions options;
            options.only = implementation;
            options.trip = trip;
            const auto outputs = op_test::run_op("linear_cross_entropy_grad", inputs, attrs, options).outputs;
            EXPECT_NEAR(outputs[1].at(0), (trip == 0 ? 0 : 10) + expected.loss, 2e-5 * (1 + expected.loss));
            EXPECT_EQ(outputs[1].at(1), (trip == 0 ? 0 : 3) + expected.targets);
            const double rounding = dtype == DType::bf16 ? 1.0 / 128 : dtype == DType::f16 ? 1.0 / 1024 : 1e-4;
            const double least = dtype == DType::bf16 ? 2e-3 : dtype == DType::f16 ? 2.5e-4 : 1e-5;
            op_test::expect_close(outputs[0], expected.dx, least, rounding);
            if (!trains) continue;
            Tensor dw = expected.dw;
            for (int64_t i = 0; i < dw.count() && trip == 1; ++i) dw.set(i, dw.at(i) + inputs[5].at(i));
            op_test::expect_close(outputs[2], dw, dtype == DType::f32 ? 1e-5 : 2 * least, rounding);
          }
      }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearCrossEntropy,
                         ::testing::Values(Case{1, 2, 4, 3, 0}, Case{2, 9, 16, 50, 4}, Case{1, 40, 32, 97, 16},
                                           Case{2, 33, 40, 2100, 32}, Case{3, 7, 33, 64, 100}, Case{1, 1, 8, 16, 0},
                                           Case{2, 37, 64, 160, 48}, Case{1, 34, 576, 2080, 0},
                                           Case{2, 37, 64, 1057, 48}, Case{1, 34, 576, 2093, 0},
                                           Case{1, 40, 32, 1055, 16}));

TEST(LinearCrossEntropyGradient, AgreesWithFiniteDifferences) {
  const int64_t hidden = 6, vocabulary = 11;
  const Tensor x = Tensor::random(DType::f32, {1, 5, hidden}, 1),
               w = Tensor::random(DType::f32, {vocabulary, hidden}, 2);
  const Tensor labels(DType::i32, {1, 5}, {-100, 3, 0, -100, 10});
  const Tensor zero = Tensor::filled(DType::f64, {2}, 0);
  const auto loss = [&](const Tensor& at_x, const Tensor& at_w) {
    return kScale * op_test::run_op("linear_cross_entropy", {at_x, at_w, labels, zero}).outputs[0].at(0);
  };
  const auto outputs = op_test::run_op("linear_cross_entropy_grad",
                                       {x, w, labels, Tensor(DType::f32, {1}, {kScale}), zero,
                                        Tensor::filled(DType::f32, {vocabulary, hidden}, 0)},
                                       {{"train_weight", int64_t{1}}})
                           .outputs;
  const auto slope = [&](Tensor at, int64_t i, const auto& objective) {
    const double step = 1.0 / 64, middle = at.at(i);
    at.set(i, middle + step);
    const double above = objective(at);
    at.set(i, middle - step);
    return (above - objective(at)) / (2 * step);
  };
  for (int64_t i = 0; i < x.count(); ++i)
    EXPECT_NEAR(slope(x, i, [&](const Tensor& at) { return loss(at, w); }), outputs[0].at(i), 1e-4) << "x " << i;
  for (int64_t i = 0; i < w.count(); ++i)
    EXPECT_NEAR(slope(w, i, [&](const Tensor& at) { return loss(x, at); }), outputs[2].at(i), 1e-4) << "w " << i;
}

// With a cap a logit l becomes c tanh(l / c): loss against the formula, gradients against differences of the loss.
TEST(LinearCrossEntropySoftcap, LossAndGradientFollowTheFormula) {
  const int64_t hidden = 6, vocabulary = 37;
  const double cap = 1.5;
  const Tensor x = Tensor::random(DType::f32, {1, 5, hidden}, 1),
               w = Tensor::random(DType::f32, {vocabulary, hidden}, 2);
  const Tensor labels(DType::i32, {1, 5}, {-100, 3, 0, -100, 10}), zero = Tensor::filled(DType::f64, {2}, 0);
  const auto loss = [&](const Tensor& at_x, const Tensor& at_w) {
    double sum = 0;
    for (int64_t row : {0, 1, 3}) {
      double total = 0, chosen = 0;
      for (int64_t v = 0; v < vocabulary; ++v) {
        double logit = 0;
        for (int64_t h = 0; h < hidden; ++h) logit += at_x.at(row * hidden + h) * at_w.at(v * hidden + h);
        logit = cap * std::tanh(logit / cap);
        total += std::exp(logit);
        if (v == static_cast<int64_t>(labels.at(row + 1))) chosen = logit;
      }
      sum += std::log(total) - chosen;
    }
    return sum;
  };
  const auto slope = [&](Tensor at, int64_t i, const auto& objective) {
    const double step = 1.0 / 128, middle = at.at(i);
    at.set(i, middle + step);
    const double above = objective(at);
    at.set(i, middle - step);
    return kScale * (above - objective(at)) / (2 * step);
  };
  const int64_t supported = hwy::SupportedTargets();
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    for (const char* implementation : kImplementations) {
      const Attrs attrs{{"softcap", cap}, {"train_weight", int64_t{1}}};
      const std::vector<Tensor> inputs{
          x, w, labels, Tensor(DType::f32, {1}, {kScale}), zero, Tensor::filled(DType::f32, {vocabulary, hidden}, 0)};
      if (!op_test::accepts("linear_cross_entropy_grad", inputs, attrs, implementation)) continue;
      SCOPED_TRACE(implementation);
      RunOptions options;
      options.only = implementation;
      const auto outputs = op_test::run_op("linear_cross_entropy_grad", inputs, attrs, options).outputs;
      EXPECT_NEAR(outputs[1].at(0), loss(x, w), 1e-5);
      for (int64_t i = 0; i < x.count(); ++i)
        EXPECT_NEAR(slope(x, i, [&](const Tensor& at) { return loss(at, w); }), outputs[0].at(i), 3e-5) << "x " << i;
      for (int64_t i = 0; i < w.count(); ++i)
        EXPECT_NEAR(slope(w, i, [&](const Tensor& at) { return loss(x, at); }), outputs[2].at(i), 3e-5) << "w " << i;
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

// Labels at their own positions and a bias on the logits: compared with a shifted loss, with the bias as the weight of
// an input that is always one.
TEST(LinearCrossEntropyBias, IsAWeightOfOneAndLabelsNeedNotShift) {
  const int64_t hidden = 8, vocabulary = 40, rows = 6;
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Tensor bias = Tensor::random(dtype, {vocabulary}, 7);  // rounded like the weight that it replaces
    Tensor x = Tensor::random(dtype, {1, rows, hidden}, 1), w = Tensor::random(dtype, {vocabulary, hidden}, 2);
    for (int64_t row = 0; row < rows; ++row) x.set(row * hidden + 7, 1);
    Tensor no_bias = w, b(DType::f32, {vocabulary});
    for (int64_t v = 0; v < vocabulary; ++v) {
      w.set(v * hidden + 7, bias.at(v));
      no_bias.set(v * hidden + 7, 0);
      b.set(v, bias.at(v));
    }
    const Tensor own(DType::i32, {1, rows}, {3, -100, 0, 39, 5, -100}),
        next(DType::i32, {1, rows}, {-100, 3, -100, 0, 39, 5});
    const Tensor scale(DType::f32, {1}, {kScale}), zero = Tensor::filled(DType::f64, {2}, 0);
    const Tensor w_acc = Tensor::filled(DType::f32, {vocabulary, hidden}, 0),
                 b_acc = Tensor::filled(DType::f32, {vocabulary}, 0);
    const auto expected =
        op_test::run_op("linear_cross_entropy_grad", {x, w, next, scale, zero, w_acc}, {{"train_weight", int64_t{1}}})
            .outputs;
    for (const char* implementation : kImplementations)
      for (int64_t chunk : {0, 2}) {
        const Attrs attrs{{"train_weight", int64_t{1}}, {"train_bias", int64_t{1}}, {"bias", int64_t{1}},
                          {"shift", int64_t{0}},        {"chunk", chunk},           {"accumulate_bias", "carried"}};
        const std::vector<Tensor> inputs{x, no_bias, own, scale, zero, w_acc, b, b_acc};
        if (!op_test::accepts("linear_cross_entropy_grad", inputs, attrs, implementation)) continue;
        SCOPED_TRACE(implementation);
        RunOptions options;
        options.only = implementation;
        const auto found = op_test::run_op("linear_cross_entropy_grad", inputs, attrs, options).outputs;
        ASSERT_EQ(found.size(), 4u);
        const double rounding = dtype == DType::bf16 ? 1.0 / 64 : 1e-5;
        EXPECT_NEAR(found[1].at(0), expected[1].at(0), 1e-4);
        EXPECT_EQ(found[1].at(1), 4);
        for (int64_t v = 0; v < vocabulary; ++v)
          EXPECT_NEAR(found[3].at(v), expected[2].at(v * hidden + 7), 1e-6 + rounding * std::abs(found[3].at(v)));
        const Attrs forward{{"bias", int64_t{1}}, {"shift", int64_t{0}}, {"chunk", chunk}};
        EXPECT_NEAR(
            op_test::run_op("linear_cross_entropy", {x, no_bias, own, zero, b}, forward, options).outputs[0].at(0),
            expected[1].at(0), 1e-4);
      }
  }
}

// The weight is the unit matrix, so that the logits are the rows of x.
TEST(LinearCrossEntropyHits, CountTheTargetsWithTheLargestLogit) {
  const int64_t classes = 5, rows = 6;
  Tensor x = Tensor::random(DType::f32, {rows, 1, classes}, 1), w = Tensor::filled(DType::f32, {classes, classes}, 0);
  for (int64_t c = 0; c < classes; ++c) w.set(c * classes + c, 1);
  Tensor labels(DType::i32, {rows, 1});
  for (int64_t row = 0; row < rows; ++row) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (x.at(row * classes + c) > x.at(row * classes + best)) best = c;
    labels.set(row, row == 1 ? -100 : row >= 4 ? static_cast<double>((best + 1) % classes) : static_cast<double>(best));
  }
  const Tensor scale(DType::f32, {1}, {kScale}), sums(DType::f64, {3}, {10.0, 3.0, 2.0});
  for (const char* op : {"linear_cross_entropy", "linear_cross_entropy_grad"})
    for (const char* implementation : kImplementations)
      for (int64_t chunk : {0, 2, 4}) {
        const bool gradient = std::string_view(op).ends_with("grad");
        const Attrs attrs{{"hits", int64_t{1}}, {"shift", int64_t{0}}, {"chunk", chunk}};
        const std::vector<Tensor> inputs =
            gradient ? std::vector<Tensor>{x, w, labels, scale, sums} : std::vector<Tensor>{x, w, labels, sums, scale};
        if (!op_test::accepts(op, inputs, attrs, implementation)) continue;
        SCOPED_TRACE(fmt::format("{} {} chunk {}", op, implementation, chunk));
        RunOptions options;
        options.only = implementation;
        const auto outputs = op_test::run_op(op, inputs, attrs, options).outputs;
        EXPECT_EQ(outputs[gradient ? 1 : 0].at(1), 3 + 5);
        EXPECT_EQ(outputs[gradient ? 1 : 0].at(2), 2 + 3);
      }
}

TEST(LinearCrossEntropyTargetsOfHighway, EveryVectorWidthAgreesWithTheReference) {
  const int64_t supported = hwy::SupportedTargets();
  const std::vector<Tensor> inputs{Tensor::random(DType::bf16, {2, 12, 32}, 1, 2.0),
                                   Tensor::random(DType::bf16, {4133, 32}, 2), some_labels(2, 12, 4133),
                                   Tensor(DType::f32, {1}, {kScale}), Tensor::filled(DType::f64, {2}, 0)};
  RunOptions reference, options;
  reference.only = "reference";
  options.only = "simd";
  const auto expected = op_test::run_op("linear_cross_entropy_grad", inputs, {}, reference).outputs;
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}}) {
    if ((supported & target) == 0) continue;
    SCOPED_TRACE(target);
    hwy::SetSupportedTargetsForTest(target);
    const auto outputs = op_test::run_op("linear_cross_entropy_grad", inputs, {}, options).outputs;
    EXPECT_NEAR(outputs[1].at(0), expected[1].at(0), 1e-4);
    op_test::expect_close(outputs[0], expected[0], 2e-4, 1.0 / 64);
  }
  hwy::SetSupportedTargetsForTest(0);
}

// The chunk changes only the order of the sums in the weight's gradient.
TEST(LinearCrossEntropyChunks, LossAndInputGradientDoNotDependOnTheChunk) {
  const std::vector<Tensor> inputs{Tensor::random(DType::f32, {2, 24, 32}, 1), Tensor::random(DType::f32, {80, 32}, 2),
                                   some_labels(2, 24, 80), Tensor(DType::f32, {1}, {kScale}),
                                   Tensor::filled(DType::f64, {2}, 0)};
  const auto run = [&](int64_t chunk) {
    return op_test::run_op("linear_cross_entropy_grad", inputs, {{"chunk", chunk}}).outputs;
  };
  const auto whole = run(0);
  for (int64_t chunk : {1, 5, 12, 24, 47, 48, 1000}) {
    SCOPED_TRACE(chunk);
    const auto outputs = run(chunk);
    EXPECT_NEAR(outputs[1].at(0), whole[1].at(0), 1e-5);
    op_test::expect_close(outputs[0], whole[0], 1e-6, 1e-5);
  }
}

TEST(LinearCrossEntropyTargets, NoTargetMeansNoLossAndZeroGradients) {
  const std::vector<Tensor> inputs{Tensor::random(DType::bf16, {2, 8, 32}, 1), Tensor::random(DType::bf16, {64, 32}, 2),
                                   Tensor::filled(DType::i32, {2, 8}, -100),   Tensor(DType::f32, {1}, {kScale}),
                                   Tensor::filled(DType::f64, {2}, 7),         Tensor(DType::f32, {64, 32})};
  const auto outputs = op_test::run_op("linear_cross_entropy_grad", inputs,
                                       {{"chunk", int64_t{4}}, {"train_weight", int64_t{1}}, {"accumulate", "carried"}})
                           .outputs;
  EXPECT_EQ(outputs[1].at(0), 7);
  EXPECT_EQ(outputs[1].at(1), 7);
  op_test::expect_close(outputs[0], Tensor::filled(DType::f64, {2, 8, 32}, 0), 0, 0);
  op_test::expect_close(outputs[2], Tensor::filled(DType::f64, {64, 32}, 0), 0, 0);
}

TEST(LinearCrossEntropyTargets, LabelsOutsideTheVocabularyAreAnError) {
  for (const double label : {64.0, -1.0, 1e6, -101.0}) {
    Tensor labels = Tensor::filled(DType::i32, {1, 4}, 5);
    labels.set(2, label);
    const std::vector<Tensor> inputs{Tensor::random(DType::f32, {1, 4, 8}, 1), Tensor::random(DType::f32, {64, 8}, 2),
                                     labels, Tensor::filled(DType::f64, {2}, 0)};
    EXPECT_THROW(op_test::run_op("linear_cross_entropy", inputs), InternalError) << label;
  }
}

// Large logits neither overflow nor lose the target; a NaN logit shows in the loss.
TEST(LinearCrossEntropyRange, ExtremeLogits) {
  for (const char* implementation : kImplementations) {
    SCOPED_TRACE(implementation);
    Tensor x = Tensor::filled(DType::f32, {1, 2, 1}, 1), w = Tensor::filled(DType::f32, {40, 1}, -1000);
    w.set(3, 1000);
    const Tensor labels(DType::i32, {1, 2}, {0, 7});
    RunOptions options;
    options.only = implementation;
    const Tensor zero = Tensor::filled(DType::f64, {2}, 0);
    if (!op_test::accepts("linear_cross_entropy", {x, w, labels, zero}, {}, implementation)) continue;
    EXPECT_NEAR(op_test::run_op("linear_cross_entropy", {x, w, labels, zero}, {}, options).outputs[0].at(0), 2000,
                1e-3);
    w.set(20, std::nan(""));
    EXPECT_TRUE(
        std::isnan(op_test::run_op("linear_cross_entropy", {x, w, labels, zero}, {}, options).outputs[0].at(0)));
  }
}

// Rows whose logits rise, fall and jump along the vocabulary, by far more than the exponential of their difference can
// represent.
class RisingLogits : public ::testing::TestWithParam<int64_t> {};

TEST_P(RisingLogits, AreNoTrouble) {
  const int64_t rows = 37, hidden = 1280, vocabulary = GetParam();  // several blocks for two threads or fewer
  Tensor x = Tensor::random(DType::bf16, {1, rows, hidden}, 1, 0.25), w(DType::bf16, {vocabulary, hidden});
  for (int64_t row = 0; row < rows; ++row) x.set(row * hidden, row % 5 * 32 - 64);
  for (int64_t v = 0; v < vocabulary; ++v)
    for (int64_t h = 0; h < hidden; ++h)
      w.set(v * hidden + h, h == 0 ? (static_cast<double>(v) - 300) / 64 : v % 7 * 0.25);
  Tensor labels(DType::i32, {1, rows});
  for (int64_t row = 0; row < rows; ++row)
    labels.set(row, row % 3 == 0 ? static_cast<double>(vocabulary - 1) : row * 17);
  const Expected expected = expected_loss(x, w, labels, true);
  const std::vector<Tensor> inputs{x,
                                   w,
                                   labels,
                                   Tensor(DType::f32, {1}, {kScale}),
                                   Tensor::filled(DType::f64, {2}, 0),
                                   Tensor::filled(DType::f32, {vocabulary, hidden}, 0)};
  for (const char* implementation : kImplementations) {
    const Attrs attrs{{"train_weight", int64_t{1}}};
    if (!op_test::accepts("linear_cross_entropy_grad", inputs, attrs, implementation)) continue;
    SCOPED_TRACE(implementation);
    RunOptions options;
    options.only = implementation;
    const auto outputs = op_test::run_op("linear_cross_entropy_grad", inputs, attrs, options).outputs;
    EXPECT_NEAR(outputs[1].at(0), expected.loss, 2e-5 * expected.loss);
    op_test::expect_close(outputs[0], expected.dx, 2e-2, 1.0 / 128);
    op_test::expect_close(outputs[2], expected.dw, 4e-3, 1.0 / 128);
  }
}

// Full strips of 32 entries, and a last one of 13.
INSTANTIATE_TEST_SUITE_P(Vocabularies, RisingLogits, ::testing::Values(640, 1101));

TEST(LinearCrossEntropyRange, ALogitThatIsNoNumberShowsInBf16Too) {
  const Tensor x = Tensor::filled(DType::bf16, {1, 2, 32}, 1), labels(DType::i32, {1, 2}, {0, 7});
  Tensor w = Tensor::filled(DType::bf16, {96, 32}, 1);
  w.set(70 * 32, std::nan(""));
  const Tensor zero = Tensor::filled(DType::f64, {2}, 0);
  for (const char* implementation : kImplementations) {
    RunOptions options;
    options.only = implementation;
    if (!op_test::accepts("linear_cross_entropy", {x, w, labels, zero}, {}, implementation)) continue;
    EXPECT_TRUE(std::isnan(op_test::run_op("linear_cross_entropy", {x, w, labels, zero}, {}, options).outputs[0].at(0)))
        << implementation;
  }
}

TEST(LinearCrossEntropyRules, RejectWhatDoesNotFit) {
  const Tensor x(DType::f32, {2, 3, 8}), w(DType::f32, {5, 8}), labels(DType::i32, {2, 3}), sums(DType::f64, {2});
  const auto infer = [](const std::vector<Tensor>& inputs, const Attrs& attrs) {
    return op_test::infer_types(find_op("linear_cross_entropy"), inputs, attrs);
  };
  EXPECT_EQ(infer({x, w, labels, sums}, {})[0].dtype, DType::f64);
  EXPECT_EQ(infer({x, w, labels, sums, Tensor(DType::f32, {1})}, {}).size(), 1u);
  EXPECT_THROW(infer({x, w, labels}, {}), InternalError);
  EXPECT_THROW(infer({x, w, Tensor(DType::i32, {3, 2}), sums}, {}), InternalError);
  EXPECT_THROW(infer({x, w, labels, Tensor(DType::f32, {2})}, {}), InternalError);
  EXPECT_THROW(infer({x, w, labels, sums}, {{"layout", "in_out"}}), InternalError);
  EXPECT_THROW(infer({x, w, labels, sums}, {{"chunk", int64_t{-1}}}), InternalError);
  EXPECT_THROW(infer({x, w, labels, sums}, {{"accumulate", "never"}}), InternalError);
}

// Logits exist for one chunk only.
TEST(LinearCrossEntropyRules, ScratchGrowsWithTheChunkNotWithTheRows) {
  const auto booked = [](int64_t rows, int64_t chunk) {
    const std::vector<Tensor> inputs{Tensor(DType::bf16, {1, rows, 16}), Tensor(DType::bf16, {4096, 16}),
                                     Tensor(DType::i32, {1, rows}), Tensor(DType::f64, {2})};
    return op_test::spec_of("linear_cross_entropy", inputs, {{"chunk", chunk}}, op_test::host_facts()).scratch_bytes;
  };
  EXPECT_EQ(booked(1024, 64), booked(4096, 64));
  EXPECT_GE(booked(4096, 128) - booked(4096, 64), 64 * 4096 * 4);
}

}  // namespace
}  // namespace headroom
