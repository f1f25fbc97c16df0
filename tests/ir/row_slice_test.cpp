// Calls on a slice of the rows of their tensors.
#include "ir/row_slice.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "test_ops.h"

namespace headroom {
namespace {

Type matrix(int64_t rows, Tier tier = Tier::device) { return {DType::f32, {Dim::of(rows), Dim::of(8)}, {}, tier}; }

TEST(RowSlice, IsWhatTheAttributesSay) {
  Attrs attrs{{"decay", int64_t{1}}};
  EXPECT_FALSE(row_slice(attrs));
  set_row_slice(attrs, {16, 4});
  EXPECT_EQ(row_slice(attrs), (RowSlice{16, 4}));
}

TEST(RowSlice, TakesRowsOfMatricesAlone) {
  const RowSlice slice{16, 4};
  EXPECT_EQ(rows_of(matrix(20), slice), matrix(4));
  EXPECT_EQ(rows_of(matrix(4), slice), matrix(4));  // a window that holds them
  const Type scalars{DType::f32, {Dim::of(16)}};
  EXPECT_EQ(rows_of(scalars, slice), scalars);
  EXPECT_THROW(rows_of(matrix(19), slice), InternalError);
  EXPECT_THROW(rows_of(matrix(20), {-1, 4}), InternalError);
  EXPECT_THROW(rows_of(matrix(20), {0, INT64_MAX}), InternalError);
}

TEST(RowSlice, BeginsAtItsFirstRow) {
  ConcreteType whole{DType::bf16, {20, 8}}, window{DType::bf16, {4, 8}}, batch{DType::bf16, {20, 8}};
  EXPECT_EQ(select_rows(matrix(20), whole, {16, 4}), 16 * 8 * 2);
  EXPECT_EQ(whole.dims, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(select_rows(matrix(4), window, {16, 4}), 0);
  const Type rows{DType::bf16, {Dim::of_symbol(0), Dim::of(8)}};
  EXPECT_EQ(select_rows(rows, batch, {16, 4}), 0);
  EXPECT_EQ(batch.dims, (std::vector<int64_t>{20, 8}));
}

// (x, y) -> x + y in the storage of x
class AddTo final : public test::TestOp {
 public:
  std::string_view name() const override { return "add_to"; }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, true}}; }
  test::Types infer(std::span<const Type> inputs, const Attrs&) const override {
    HR_CHECK(inputs[0].shape == inputs[1].shape, "two shapes");
    return {inputs[0]};
  }
};

TEST(RowSlice, WhatIsWrittenIntoAWholeOperandIsWhole) {
  const AddTo op;
  Attrs attrs;
  set_row_slice(attrs, {16, 4});
  const Type whole = matrix(20, Tier::disk), window = matrix(4);
  EXPECT_EQ(infer_call(op, std::array{whole, window}, attrs), std::vector{whole});
  EXPECT_EQ(infer_call(op, std::array{window, whole}, attrs), std::vector{window});
  EXPECT_THROW(infer_call(op, std::array{whole, window}, {}), InternalError);
  EXPECT_THROW(infer_call(op, std::array{whole, matrix(5)}, attrs), InternalError);
}

}  // namespace
}  // namespace headroom
