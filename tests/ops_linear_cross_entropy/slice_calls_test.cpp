// The loss by calls on slices of the head, as the pass vocabulary-slices makes them: what one call on the whole head
// gives.
#include <gtest/gtest.h>

#include "../ops_support/op_harness.h"
#include "ir/row_slice.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

struct Case {
  int64_t batch, sequence, hidden, vocabulary, slice;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << "x" << c.sequence << " hidden " << c.hidden << " vocabulary " << c.vocabulary
             << " slices of " << c.slice;
}

Tensor labels_of(const Case& c) {
  Tensor labels(DType::i32, {c.batch, c.sequence});
  for (int64_t i = 0; i < labels.count(); ++i)
    labels.set(i, i % 5 == 3 ? -100 : static_cast<double>(i * 7919 % c.vocabulary));
  labels.set(1, static_cast<double>(c.slice));  // the first entry of a slice, and the last of all
  labels.set(2, static_cast<double>(c.vocabulary - 1));
  return labels;
}

// What the calls on slices read; the head and its gradient's sums are whole.
struct Operands {
  Tensor x, head, labels, scale, sums;
};

Operands operands_of(const Case& c, DType dtype, bool wide) {
  return {Tensor::random(dtype, {c.batch, c.sequence, c.hidden}, 1, 2.0),
          Tensor::random(wide ? DType::f32 : dtype, {c.vocabulary, c.hidden}, 2), labels_of(c),
          Tensor(DType::f32, {1}, {0.25}), Tensor::random(DType::f32, {c.vocabulary, c.hidden}, 5)};
}

Tensor rows_of(const Tensor& whole, const RowSlice& slice) {
  const int64_t width = whole.type().dims[1];
  Tensor rows(whole.type().dtype, {slice.rows, width});
  for (int64_t i = 0; i < rows.count(); ++i) rows.set(i, whole.at(slice.first * width + i));
  return rows;
}

class SliceCalls : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<RowSlice> slices() const {
    std::vector<RowSlice> out;
    for (int64_t first = 0; first < GetParam().vocabulary; first += GetParam().slice)
      out.push_back({first, std::min(GetParam().slice, GetParam().vocabulary - first)});
    return out;
  }

  static Attrs on(const RowSlice& slice, Attrs attrs) {
    set_row_slice(attrs, slice);
    return attrs;
  }

  // Whether kernels of this implementation take every slice.
  bool accepted(const Operands& operands, const Attrs& attrs, bool trains, const char* implementation) const {
    const Case& c = GetParam();
    const Tensor softmax(DType::f64, {c.batch, c.sequence, 3}), dx(DType::f32, {c.batch, c.sequence, c.hidden});
    for (const RowSlice& slice : slices()) {
      const Tensor head = rows_of(operands.head, slice);
      std::vector<Tensor> inputs{operands.x, head, operands.labels, softmax, operands.scale, dx};
      if (trains) inputs.push_back(rows_of(operands.sums, slice));
      Attrs call = on(slice, attrs);
      if (!op_test::accepts("cross_entropy_slice", {operands.x, head, operands.labels, softmax}, call, implementation))
        return false;
      call.set("adds", int64_t{1}).set("train_weight", int64_t{trains});
      if (!op_test::accepts("cross_entropy_slice_grad", inputs, call, implementation)) return false;
    }
    return true;
  }

  Tensor softmax(const Operands& operands, const Attrs& attrs, const RunOptions& options) const {
    std::vector<Tensor> so_far;
    for (const RowSlice& slice : slices()) {
      std::vector<Tensor> inputs{operands.x, rows_of(operands.head, slice), operands.labels};
      inputs.insert(inputs.end(), so_far.begin(), so_far.end());
      so_far = op_test::run_op("cross_entropy_slice", inputs, on(slice, attrs), options).outputs;
    }
    return so_far.front();
  }

  // dx and, if trained, the whole sums of the head's gradient.
  std::vector<Tensor> gradient(const Operands& operands, const Tensor& softmax, const Attrs& attrs, bool trains,
                               const RunOptions& options) const {
    std::vector<Tensor> dx;
    Tensor sums = operands.sums;
    for (const RowSlice& slice : slices()) {
      std::vector<Tensor> inputs{operands.x, rows_of(operands.head, slice), operands.labels, softmax, operands.scale};
      inputs.insert(inputs.end(), dx.begin(), dx.end());
      if (trains) inputs.push_back(rows_of(operands.sums, slice));
      Attrs call = on(slice, attrs);
      call.set("adds", static_cast<int64_t>(dx.size())).set("train_weight", int64_t{trains});
      std::vector<Tensor> made = op_test::run_op("cross_entropy_slice_grad", inputs, call, options).outputs;
      dx = {made[0]};
      if (trains)
        for (int64_t i = 0; i < made[1].count(); ++i) sums.set(slice.first * GetParam().hidden + i, made[1].at(i));
    }
    if (trains) dx.push_back(sums);
    return dx;
  }
};

constexpr const char* kImplementations[] = {"amx", "onednn", "simd", "reference"};

TEST_P(SliceCalls, GiveTheLossOfTheWholeHead) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool wide : {false, true})
      for (const auto& [softcap, shift] : {std::pair{0.0, 1}, {3.0, 0}}) {
        const Operands operands = operands_of(GetParam(), dtype, wide);
        const Attrs attrs{{"softcap", softcap}, {"shift", int64_t{shift}}};
        const Tensor before(DType::f64, {3}, {10.0, 3.0, 1.0});
        Attrs whole = attrs;
        whole.set("hits", int64_t{1});
        const Tensor expected =
            op_test::run_op("linear_cross_entropy", {operands.x, operands.head, operands.labels, before}, whole,
                            RunOptions{"reference"})
                .outputs[0];
        for (const char* implementation : kImplementations) {
          if (!accepted(operands, attrs, false, implementation)) continue;
          SCOPED_TRACE(fmt::format("{} {} softcap {}", implementation, dtype_name(dtype), softcap));
          whole.set("vocabulary", GetParam().vocabulary);
          const Tensor found =
              op_test::run_op("cross_entropy_sum",
                              {softmax(operands, attrs, RunOptions{implementation}), operands.labels, before}, whole)
                  .outputs[0];
          EXPECT_NEAR(found.at(0), expected.at(0), 3e-5 * expected.at(0));
          EXPECT_EQ(found.at(1), expected.at(1));
          EXPECT_EQ(found.at(2), expected.at(2));
        }
      }
}

TEST_P(SliceCalls, GiveTheGradientOfTheWholeHead) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool wide : {false, true})
      for (const bool trains : {true, false})
        for (const auto& [softcap, accumulate] : {std::pair{0.0, "always"}, {3.0, "carried"}}) {
          const Operands operands = operands_of(GetParam(), dtype, wide);
          const Attrs attrs{{"softcap", softcap}, {"accumulate", std::string(accumulate)}};
          Attrs whole = attrs;
          whole.set("train_weight", int64_t{trains});
          std::vector<Tensor> inputs{operands.x, operands.head, operands.labels, operands.scale,
                                     Tensor(DType::f64, {2}, {0.0, 0.0})};
          if (trains) inputs.push_back(operands.sums);
          const std::vector<Tensor> expected =
              op_test::run_op("linear_cross_entropy_grad", inputs, whole, RunOptions{"reference"}).outputs;
          for (const char* implementation : kImplementations) {
            if (!accepted(operands, attrs, trains, implementation)) continue;
            SCOPED_TRACE(fmt::format("{} {} wide {} trains {}", implementation, dtype_name(dtype), wide, trains));
            RunOptions options;
            options.only = implementation;
            const std::vector<Tensor> found =
                gradient(operands, softmax(operands, Attrs{{"softcap", softcap}}, options), attrs, trains, options);
            const double share = dtype == DType::f32 ? 1e-4 : dtype == DType::bf16 ? 1.0 / 64 : 1.0 / 512;
            const double least = dtype == DType::f32 ? 1e-5 : dtype == DType::bf16 ? 2e-3 : 2.5e-4;
            EXPECT_EQ(found[0].type().dtype, DType::f32);
            for (int64_t i = 0; i < found[0].count(); ++i)
              ASSERT_NEAR(found[0].at(i), expected[0].at(i), least + share * std::abs(expected[0].at(i))) << i;
            if (trains) op_test::expect_close(found[1], expected[2], least, share);
          }
        }
}

TEST_P(SliceCalls, OfALogitThatIsNotFiniteAreNotANumber) {
  Operands operands = operands_of(GetParam(), DType::f32, false);
  operands.head.set((GetParam().vocabulary - 2) * GetParam().hidden, INFINITY);
  const Tensor sums =
      op_test::run_op("cross_entropy_sum",
                      {softmax(operands, {}, RunOptions{"simd"}), operands.labels, Tensor(DType::f64, {2}, {0.0, 0.0})},
                      Attrs{{"vocabulary", GetParam().vocabulary}})
          .outputs[0];
  EXPECT_TRUE(std::isnan(sums.at(0)));
}

TEST(SliceCallsSum, RefusesALabelOutsideTheVocabulary) {
  const Tensor labels(DType::i32, {1, 2}, {0, 9});
  const std::vector<Tensor> inputs{Tensor::filled(DType::f64, {1, 2, 3}, 1), labels,
                                   Tensor(DType::f64, {2}, {0.0, 0.0})};
  EXPECT_THROW(op_test::run_op("cross_entropy_sum", inputs, Attrs{{"vocabulary", int64_t{9}}}), InternalError);
  EXPECT_NO_THROW(op_test::run_op("cross_entropy_sum", inputs, Attrs{{"vocabulary", int64_t{10}}}));
}

// Several pieces of a slice and several groups of rows; slices of few entries, the last of one.
INSTANTIATE_TEST_SUITE_P(Shapes, SliceCalls,
                         ::testing::Values(Case{1, 71, 32, 300, 128}, Case{2, 5, 24, 65, 32},
                                           Case{1, 520, 16, 2304, 1152}));

}  // namespace
}  // namespace headroom
