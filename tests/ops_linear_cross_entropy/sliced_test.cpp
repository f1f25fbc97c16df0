// The loss in slices of the vocabulary: what a chunk of few rows becomes.
#include <gtest/gtest.h>

#include "../ops_support/op_harness.h"
#include "ops/linear_cross_entropy/tiled.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

struct Case {
  int64_t batch, sequence, hidden, vocabulary, chunk;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << "x" << c.sequence << " hidden " << c.hidden << " vocabulary " << c.vocabulary << " chunk "
             << c.chunk;
}

Tensor labels_of(const Case& c) {
  Tensor labels(DType::i32, {c.batch, c.sequence});
  for (int64_t i = 0; i < labels.count(); ++i)
    labels.set(i, i % 5 == 3 ? -100 : static_cast<double>(i * 7919 % c.vocabulary));
  labels.set(1, 0);
  labels.set(2, static_cast<double>(c.vocabulary - 1));
  return labels;
}

class SlicedLoss : public ::testing::TestWithParam<Case> {
 protected:
  // The results in slices beside those of all logits at once.
  void expect_results_of_whole_logits(std::string_view op, const std::vector<Tensor>& inputs, Attrs attrs, double least,
                                      double share) const {
    const bool gradient = op.ends_with("grad");
    Attrs whole = attrs;
    whole.set("chunk", int64_t{0});
    RunOptions plain;
    plain.only = "reference";
    const auto expected = op_test::run_op(op, inputs, whole, plain).outputs;
    attrs.set("chunk", GetParam().chunk);
    int compared = 0;
    for (const char* implementation : {"amx", "onednn", "simd"}) {
      if (!op_test::accepts(op, inputs, attrs, implementation)) continue;
      SCOPED_TRACE(fmt::format("{} {}", op, implementation));
      RunOptions options;
      options.only = implementation;
      const auto found = op_test::run_op(op, inputs, attrs, options).outputs;
      const size_t sums = gradient ? 1 : 0;
      EXPECT_NEAR(found[sums].at(0), expected[sums].at(0), 3e-5 * expected[sums].at(0));
      for (int64_t i = 1; i < expected[sums].count(); ++i) EXPECT_EQ(found[sums].at(i), expected[sums].at(i));
      for (size_t i = 0; i < expected.size(); ++i)
        if (i != sums) op_test::expect_close(found[i], expected[i], least, share);
      ++compared;
    }
    EXPECT_GE(compared, 1);
  }
};

TEST_P(SlicedLoss, GivesTheLossOfWholeLogits) {
  const Case& c = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const double softcap : {0.0, 3.0}) {
      const std::vector<Tensor> inputs{Tensor::random(dtype, {c.batch, c.sequence, c.hidden}, 1, 2.0),
                                       Tensor::random(dtype, {c.vocabulary, c.hidden}, 2), labels_of(c),
                                       Tensor(DType::f64, {3}, {10.0, 3.0, 1.0}),
                                       Tensor::random(DType::f32, {c.vocabulary}, 4)};
      const Attrs attrs{{"softcap", softcap}, {"bias", int64_t{1}}, {"hits", int64_t{1}}};
      expect_results_of_whole_logits("linear_cross_entropy", inputs, attrs, 0, 0);
    }
}

TEST_P(SlicedLoss, GivesTheGradientOfWholeLogits) {
  const Case& c = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool wide : {false, true})
      for (const bool trains : {true, false})
        for (const double softcap : {0.0, 3.0}) {
          std::vector<Tensor> inputs{Tensor::random(dtype, {c.batch, c.sequence, c.hidden}, 1, 2.0),
                                     Tensor::random(wide ? DType::f32 : dtype, {c.vocabulary, c.hidden}, 2),
                                     labels_of(c), Tensor(DType::f32, {1}, {0.25}),
                                     Tensor(DType::f64, {2}, {10.0, 3.0})};
          if (trains) inputs.push_back(Tensor::random(DType::f32, {c.vocabulary, c.hidden}, 5));
          if (trains) inputs.push_back(Tensor::random(DType::f32, {c.vocabulary}, 6));
          if (trains) inputs.push_back(Tensor::random(DType::f32, {c.vocabulary}, 7));
          Attrs attrs{{"train_weight", int64_t{trains}}, {"softcap", softcap}};
          if (trains) attrs.set("bias", int64_t{1}).set("train_bias", int64_t{1});
          const double share = dtype == DType::f32 ? 1e-4 : dtype == DType::bf16 ? 1.0 / 64 : 1.0 / 512;
          const double least = dtype == DType::f32 ? 1e-5 : dtype == DType::bf16 ? 2e-3 : 2.5e-4;
          expect_results_of_whole_logits("linear_cross_entropy_grad", inputs, attrs, least, share);
        }
}

// The weight's sums are overwritten by the first group of rows that has a target, and added to by the others.
TEST_P(SlicedLoss, OverwritesTheSumsOfAnEarlierStep) {
  const Case& c = GetParam();
  Tensor labels = labels_of(c);
  for (int64_t i = 0; i < labels.count() / 2 + 1; ++i) labels.set(i, -100);
  const std::vector<Tensor> inputs{Tensor::random(DType::f32, {c.batch, c.sequence, c.hidden}, 1, 2.0),
                                   Tensor::random(DType::f32, {c.vocabulary, c.hidden}, 2),
                                   labels,
                                   Tensor(DType::f32, {1}, {0.25}),
                                   Tensor(DType::f64, {2}, {10.0, 3.0}),
                                   Tensor::filled(DType::f32, {c.vocabulary, c.hidden}, 7)};
  Attrs attrs{{"train_weight", int64_t{1}}, {"accumulate", "carried"}, {"loss_accumulate", "carried"}};
  expect_results_of_whole_logits("linear_cross_entropy_grad", inputs, attrs, 1e-5, 1e-4);
}

TEST_P(SlicedLoss, OfALogitThatIsNotFiniteIsNotANumber) {
  const Case& c = GetParam();
  std::vector<Tensor> inputs{Tensor::random(DType::f32, {c.batch, c.sequence, c.hidden}, 1, 2.0),
                             Tensor::random(DType::f32, {c.vocabulary, c.hidden}, 2), labels_of(c),
                             Tensor(DType::f64, {2}, {0.0, 0.0})};
  inputs[1].set((c.vocabulary - 2) * c.hidden, INFINITY);
  const Tensor sums =
      op_test::run_op("linear_cross_entropy", inputs, Attrs{{"chunk", c.chunk}}, RunOptions{"simd"}).outputs[0];
  EXPECT_TRUE(std::isnan(sums.at(0)));
}

// Slices of 256 entries and more, with a last one of fewer, and last rows of fewer.
INSTANTIATE_TEST_SUITE_P(Shapes, SlicedLoss,
                         ::testing::Values(Case{1, 71, 32, 4099, 4}, Case{2, 45, 24, 5000, 8},
                                           Case{1, 130, 24, 4096, 32}));

std::vector<ConcreteType> gradient_inputs(DType dtype, int64_t rows, int64_t hidden, int64_t vocabulary) {
  return {{dtype, {1, rows, hidden}}, {dtype, {vocabulary, hidden}},     {DType::i32, {1, rows}}, {DType::f32, {1}},
          {DType::f64, {2}},          {DType::f32, {vocabulary, hidden}}};
}

// At the sizes of real models the library computes the slices where it computes whole logits.
TEST(LossSlices, AreComputedByTheLibraryWhereChunksAre) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<Tensor> inputs;
    for (const ConcreteType& type : gradient_inputs(dtype, 250, 576, 8200)) inputs.emplace_back(type.dtype, type.dims);
    const auto accepted = [&](int64_t chunk) {
      const Attrs attrs{{"chunk", chunk}, {"train_weight", int64_t{1}}};
      return op_test::accepts("linear_cross_entropy_grad", inputs, attrs, "onednn");
    };
    EXPECT_EQ(accepted(16), accepted(0)) << dtype_name(dtype);
  }
}

// The weight is read for hundreds of rows at a time, in the bytes of a few rows of logits.
TEST(LossSlices, HoldManyRowsInTheBytesOfFew) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t chunk : {1, 4, 16}) {
      const std::vector<ConcreteType> in = gradient_inputs(dtype, 512, 576, 49152);
      const Attrs attrs{{"chunk", chunk}, {"train_weight", int64_t{1}}};
      const LossShape shape = loss_shape({in, {}, attrs});
      const LossSlices slices = loss_slices(shape, dtype, true);
      EXPECT_GE(slices.rows, 32 * std::min<int64_t>(chunk, 4));
      EXPECT_GE(slices.entries, 256);
      const int64_t sums = dtype == DType::f32 ? 0 : 576;
      EXPECT_LE(slices.rows * (slices.entries + sums), chunk * 49152);
    }
}

TEST(LossSlices, AreForFewRowsOfALargeVocabulary) {
  DeviceFacts facts;
  facts.capabilities = capabilities_of(InstructionSet::avx2);
  const auto sliced = [&](int64_t rows, int64_t vocabulary, Attrs attrs) {
    std::vector<ConcreteType> in = gradient_inputs(DType::bf16, rows, 64, vocabulary);
    if (attrs.text("layout") == "in_out") in[1] = in[5] = {DType::bf16, {64, vocabulary}};
    attrs.set("train_weight", int64_t{0});
    return runs_sliced({in, {}, attrs}, facts, true);
  };
  EXPECT_TRUE(sliced(256, 32000, {{"chunk", int64_t{4}}}));
  EXPECT_FALSE(sliced(256, 32000, {{"chunk", int64_t{64}}}));
  EXPECT_FALSE(sliced(256, 32000, {{"chunk", int64_t{0}}}));
  EXPECT_FALSE(sliced(8, 32000, {{"chunk", int64_t{8}}}));
  EXPECT_FALSE(sliced(0, 32000, {{"chunk", int64_t{4}}}));
  EXPECT_FALSE(sliced(256, 2048, {{"chunk", int64_t{4}}}));
  EXPECT_FALSE(sliced(256, 32000, {{"chunk", int64_t{4}}, {"layout", "in_out"}}));
  facts.capabilities = {};
  EXPECT_FALSE(sliced(256, 32000, {{"chunk", int64_t{4}}}));
}

}  // namespace
}  // namespace headroom
