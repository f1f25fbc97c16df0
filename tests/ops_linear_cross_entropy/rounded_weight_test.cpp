// An f32 weight with narrow rows: the same bits as with the weight rounded beforehand.
#include <gtest/gtest.h>

#include "../ops_support/op_harness.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

struct Case {
  int64_t rows, hidden, vocabulary, chunk;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.rows << " rows, hidden " << c.hidden << ", vocabulary " << c.vocabulary << ", chunk " << c.chunk;
}

class RoundedLossWeight : public ::testing::TestWithParam<Case> {
 protected:
  void expect_same_bits(DType dtype) const;
};

void RoundedLossWeight::expect_same_bits(DType dtype) const {
  const auto [rows, hidden, vocabulary, chunk] = GetParam();
  const Tensor x = Tensor::random(dtype, {1, rows, hidden}, 1), w = Tensor::random(DType::f32, {vocabulary, hidden}, 2),
               sums(DType::f64, {2}, {10.0, 3.0}), scale(DType::f32, {1}, {0.25});
  Tensor labels(DType::i32, {1, rows});
  for (int64_t i = 0; i < rows; ++i) labels.set(i, i % 3 == 2 ? -100 : static_cast<double>(i * 7 % vocabulary));
  const Attrs attrs{{"chunk", chunk}, {"train_weight", int64_t{1}}};
  const Tensor acc = Tensor::random(DType::f32, {vocabulary, hidden}, 3);
  int compared = 0;
  for (const char* op : {"linear_cross_entropy", "linear_cross_entropy_grad"})
    for (const char* implementation : {"amx_tiles", "amx", "onednn", "simd", "reference"})
      for (const InstructionSet set : {instruction_set(), InstructionSet::avx2, InstructionSet::avx512_bf16}) {
        if (instruction_set() < set) continue;
        const bool gradient = std::string_view(op).ends_with("grad");
        std::vector<Tensor> wide{x, w, labels, gradient ? scale : sums};
        if (gradient) wide.insert(wide.end(), {sums, acc});
        std::vector<Tensor> narrow = wide;
        narrow[1] = op_test::rounded(w, dtype);
        RunOptions options;
        options.only = implementation;
        options.facts.capabilities = capabilities_of(set);
        if (!op_test::accepts(op, wide, attrs, implementation, options.facts)) continue;
        if (!op_test::accepts(op, narrow, attrs, implementation, options.facts)) continue;
        // If tiles are booked, the others process as many rows at a time as the scratch holds.
        const bool tiled = op_test::accepts(op, wide, attrs, "amx_tiles", options.facts);
        if (tiled && std::string_view(implementation) != "amx_tiles") continue;
        SCOPED_TRACE(fmt::format("{} {} {}", op, implementation, instruction_set_name(set)));
        const auto found = op_test::run_op(op, wide, attrs, options).outputs;
        const auto expected = op_test::run_op(op, narrow, attrs, options).outputs;
        for (size_t i = 0; i < expected.size(); ++i) op_test::expect_same_bytes(found[i], expected[i]);
        ++compared;
      }
  EXPECT_GT(compared, 0) << dtype_name(dtype);
}

TEST_P(RoundedLossWeight, GivesTheBitsOfANarrowOne) {
  for (const DType dtype : {DType::bf16, DType::f16}) expect_same_bits(dtype);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RoundedLossWeight,
                         ::testing::Values(Case{2, 4, 3, 0}, Case{40, 32, 97, 16}, Case{66, 40, 2100, 32},
                                           Case{74, 64, 160, 48}, Case{34, 576, 2080, 0}, Case{74, 64, 1057, 48},
                                           Case{34, 576, 2093, 0}));

}  // namespace
}  // namespace headroom
