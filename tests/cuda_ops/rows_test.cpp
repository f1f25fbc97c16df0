#include "cuda_shim/cuda_harness.h"

namespace headroom::rows_on_cuda {
namespace {

using namespace op_test;

// Rows of 1 to 96 bytes: units of every size.
TEST(CudaRows, AgreeWithTheReference) {
  for (DType dtype : {DType::f32, DType::bf16, DType::i32, DType::u8})
    for (int64_t width : {1, 2, 8, 24})
      for (int64_t part : {0, 1, 2}) {
        const Attrs attrs{{"part", part}, {"parts", int64_t{3}}};
        const Tensor x = Tensor::random(dtype, {2, 7, width}, 1, 100);
        expect_cuda_matches("take_rows", {x}, attrs, {0, 0});
        const Tensor rows = run_op("take_rows", {x}, attrs).outputs[0];
        expect_cuda_matches("put_rows", {rows, Tensor::random(dtype, {2, 7, width}, 2, 100)}, attrs, {0, 0});
      }
}

TEST(CudaRows, OfIds) {
  const Attrs attrs{{"part", int64_t{1}}, {"parts", int64_t{2}}};
  expect_cuda_matches("take_rows", {Tensor::random(DType::i32, {3, 5}, 1, 1000)}, attrs, {0, 0});
}

}  // namespace
}  // namespace headroom::rows_on_cuda
