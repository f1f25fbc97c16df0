// Lookups and their gradient by calls on slices of the table: bitwise one call on the whole table.
#include <gtest/gtest.h>

#include "ir/row_slice.h"
#include "stream_support.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

constexpr int64_t kRows = 10, kWidth = 37;
const std::vector<RowSlice> kSlices{{0, 4}, {4, 4}, {8, 2}};

Tensor slice_ids() {
  Tensor ids(DType::i32, {2, 9});
  for (int64_t i = 0; i < ids.count(); ++i) ids.set(i, static_cast<double>(i * 7 % kRows));
  return ids;
}

Tensor rows_of(const Tensor& whole, const RowSlice& slice) {
  Tensor rows(whole.type().dtype, {slice.rows, kWidth});
  for (int64_t i = 0; i < rows.count(); ++i) rows.set(i, whole.at(slice.first * kWidth + i));
  return rows;
}

Attrs on(const RowSlice& slice, Attrs attrs) {
  set_row_slice(attrs, slice);
  return attrs.set("slices", static_cast<int64_t>(kSlices.size())), attrs;
}

class EmbeddingSlices : public ::testing::TestWithParam<const char*> {};

TEST_P(EmbeddingSlices, FindTheRowsOfTheWholeTable) {
  const RunOptions options{GetParam()};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor table = Tensor::random(dtype, {kRows, kWidth}, 3);
    std::vector<Tensor> so_far;
    for (const RowSlice& slice : kSlices) {
      std::vector<Tensor> inputs{slice_ids(), rows_of(table, slice)};
      inputs.insert(inputs.end(), so_far.begin(), so_far.end());
      so_far = op_test::run_op("embedding", inputs, on(slice, {{"dtype", "f32"}}), options).outputs;
    }
    const Tensor whole = op_test::run_op("embedding", {slice_ids(), table}, {{"dtype", "f32"}}, options).outputs[0];
    EXPECT_TRUE(so_far.front().same_bytes(whole));
  }
}

TEST_P(EmbeddingSlices, AddTheGradientOfTheWholeTable) {
  const RunOptions options{GetParam()};
  const Tensor dy = Tensor::random(DType::f32, {2, 9, kWidth}, 4),
               sums = Tensor::random(DType::f32, {kRows, kWidth}, 5);
  for (const Attrs& attrs : {Attrs{{"accumulate", "always"}}, Attrs{{"accumulate", "carried"}},
                             Attrs{{"accumulate", "always"}, {"padding", int64_t{5}}}}) {
    const Tensor whole = op_test::run_op("embedding_grad", {slice_ids(), dy, sums}, attrs, options).outputs[0];
    for (const RowSlice& slice : kSlices) {
      const Tensor found =
          op_test::run_op("embedding_grad", {slice_ids(), dy, rows_of(sums, slice)}, on(slice, attrs), options)
              .outputs[0];
      EXPECT_TRUE(found.same_bytes(rows_of(whole, slice))) << slice.first;
    }
  }
}

TEST(EmbeddingSlices, TakeTheirShareOfTheWork) {
  const std::vector<ConcreteType> in{{DType::i32, {2, 9}}, {DType::f32, {kRows, kWidth}}},
      out{{DType::f32, {2, 9, kWidth}}};
  const Attrs attrs{{"slices", int64_t{4}}};
  const Op& op = find_op("embedding");
  EXPECT_EQ(4 * op.work({in, out, attrs}).bytes, op.work({in, out, {}}).bytes);
}

INSTANTIATE_TEST_SUITE_P(Kernels, EmbeddingSlices, ::testing::Values("simd", "reference"));

}  // namespace
}  // namespace headroom
