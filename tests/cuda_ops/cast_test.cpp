#include <cmath>

#include "cuda_shim/cuda_harness.h"

namespace headroom::cast_on_cuda {
namespace {

using namespace op_test;

TEST(CudaCast, RoundsAsTheReference) {
  for (DType x : kFloats)
    for (const char* y : names_with(x))
      for (int64_t count : {1, 9, 256, 5001})
        expect_cuda_matches("cast", {Tensor::random(x, {count}, 1)}, {{"dtype", std::string(y)}}, {0, 0});
}

TEST(CudaCast, KeepsSpecialValues) {
  const Tensor x(DType::f32, {8}, {INFINITY, -INFINITY, NAN, -0.0, 1e-40, 3.4e38, 1.00390625, 1.01171875});
  expect_cuda_matches("cast", {x}, {{"dtype", std::string("bf16")}}, {0, 0});
}

TEST(CudaCast, WritesIntoStorage) {
  expect_cuda_matches("cast", {Tensor::random(DType::f32, {100}, 1), Tensor::random(DType::bf16, {100}, 2)},
                      {{"dtype", std::string("bf16")}}, {0, 0});
}

}  // namespace
}  // namespace headroom::cast_on_cuda
