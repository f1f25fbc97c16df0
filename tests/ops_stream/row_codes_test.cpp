// encode_rows and decode_rows against the definition of codes, in odd shapes and both dtypes.
#include "../ops_support/coded_tensor.h"
#include "ops/stream/scalar_access.h"
#include "stream_support.h"

namespace headroom::op_test {
namespace {

Storage row_codes(int64_t row) { return {static_cast<int32_t>(row), 8, DType::f32, CodeTable::integer}; }

const std::vector<std::vector<int64_t>> kShapes{{1, 1, 1}, {2, 3, 5}, {3, 70, 33}, {1, 2, 1024}, {2, 3, 2500}};

TEST(RowCodes, AreThoseOfTheDefinition) {
  for (const auto& dims : kShapes) {
    SCOPED_TRACE(dims.back());
    const Tensor x = Tensor::random(DType::f32, dims, 7, 3);
    const Coded expected = coded(x, row_codes(dims.back()));
    for (const int team : {1, 2}) {
      const Team sized(team);
      const Tensor codes = run_op("encode_rows", {x}).outputs[0];
      EXPECT_EQ(codes.type(), expected.codes.type());
      expect_same_bytes(codes, expected.codes);
      expect_same_bytes(run_op("decode_rows", {codes}).outputs[0], expected.decoded);
    }
  }
}

// An element changes by at most 1/254 of the row's largest magnitude.
TEST(RowCodes, AreNearTheirValues) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& dims : kShapes) {
      const Tensor x = Tensor::random(dtype, dims, 3, 20);
      const Tensor decoded = run_op("decode_rows", {run_op("encode_rows", {x}).outputs[0]}).outputs[0];
      EXPECT_EQ(decoded.type(), x.type());
      const int64_t row = dims.back();
      for (int64_t first = 0; first < x.count(); first += row) {
        double most = 0;
        for (int64_t i = first; i < first + row; ++i) most = std::max(most, std::fabs(read_element(x.view(), i)));
        const double rounding = dtype == DType::bf16 ? most / 256 : 1e-6 * most;
        for (int64_t i = first; i < first + row; ++i)
          EXPECT_NEAR(read_element(decoded.view(), i), read_element(x.view(), i), most / 254 + rounding);
      }
    }
}

TEST(RowCodes, OfZerosAreZeros) {
  const Tensor zeros = Tensor::filled(DType::f32, {2, 3, 40}, 0);
  expect_same_bytes(run_op("decode_rows", {run_op("encode_rows", {zeros}).outputs[0]}).outputs[0], zeros);
}

}  // namespace
}  // namespace headroom::op_test
