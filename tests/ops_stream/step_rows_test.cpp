// Rows of a serving step: their own positions, and the selection of rows whose logits are wanted.
#include <gtest/gtest.h>

#include "base/error.h"
#include "stream_support.h"

namespace headroom::op_test {
namespace {

Tensor row_of(const Tensor& x, int64_t row) {
  const int64_t width = x.type().dims[2];
  Tensor one(x.type().dtype, {1, 1, width});
  std::memcpy(one.as<std::byte>(), x.as<std::byte>() + row * one.bytes(), static_cast<size_t>(one.bytes()));
  return one;
}

Tensor positions(const std::vector<double>& values) {
  return Tensor(DType::i32, {static_cast<int64_t>(values.size())}, values);
}

TEST(StepRows, EachBatchRowHasItsOwnOffset) {
  const std::vector<double> offsets{5, 0, 30, 7, 7, -1};  // 30 and -1 are clamped
  const Attrs turned{{"heads", int64_t{2}}, {"offset", int64_t{1}}};
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const char* only : {"simd", "reference"}) {
      if (std::string(only) == "simd" && !host_facts().capabilities.has(kAvx2)) continue;
      const Tensor x = Tensor::random(dtype, {6, 1, 40}, 1), rope = Tensor::random(DType::f32, {9, 12}, 2);
      const Tensor learned = Tensor::random(DType::f32, {9, 40}, 3);
      const Tensor all = run_op("rotary", {x, rope, positions(offsets)}, turned, {only}).outputs[0];
      const Tensor added = run_op("position_embedding", {x, learned, positions(offsets)}, {}, {only}).outputs[0];
      for (int64_t row = 0; row < 6; ++row) {
        const Tensor one = positions({offsets[static_cast<size_t>(row)]});
        expect_same_bytes(row_of(all, row), run_op("rotary", {row_of(x, row), rope, one}, turned, {only}).outputs[0]);
        expect_same_bytes(row_of(added, row),
                          run_op("position_embedding", {row_of(x, row), learned, one}, {}, {only}).outputs[0]);
      }
    }
}

TEST(StepRows, OffsetsAreOneOrOnePerBatchRow) {
  const Tensor x(DType::f32, {6, 1, 40}), rope(DType::f32, {9, 12});
  EXPECT_THROW(run_op("rotary", {x, rope, positions({1, 2})}, {{"heads", int64_t{2}}, {"offset", int64_t{1}}}),
               InternalError);
  EXPECT_THROW(run_op("position_embedding", {x, Tensor(DType::f32, {9, 40}), positions({1, 2})}), InternalError);
}

TEST(StepRows, SelectsTheWantedRows) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Tensor x = Tensor::random(dtype, {5, 1, 7}, 1);
    const Tensor found = run_op("select_rows", {x, positions({4, 0, 2, 2, -1, 5})}).outputs[0];
    ASSERT_EQ(found.type().dims, (std::vector<int64_t>{6, 1, 7}));
    const std::vector<int64_t> expected{4, 0, 2, 2, 0, 0};  // those outside get row 0
    for (int64_t row = 0; row < 6; ++row)
      expect_same_bytes(row_of(found, row), row_of(x, expected[static_cast<size_t>(row)]));
  }
}

}  // namespace
}  // namespace headroom::op_test
