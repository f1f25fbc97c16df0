#include <cmath>

#include "cuda_ops/in_place.h"

namespace headroom::fake_quantize_on_cuda {
namespace {

using namespace op_test;

// Groups and tokens narrower and wider than a warp, bitwise equal to the reference.
TEST(CudaFakeQuantize, GivesTheReferencesBits) {
  uint64_t seed = 1;
  for (const DType dtype : kFloats)
    for (const char* out : names_with(dtype))
      for (const int64_t width : {1, 7, 32, 33, 100, 576}) {
        SCOPED_TRACE(width);
        const Tensor x = Tensor::random(dtype, {2, 9, width}, ++seed, 4),
                     w = Tensor::random(dtype, {11, width}, ++seed);
        Attrs grid{{"bits", int64_t{seed % 4 == 1 ? 4 : 8}}, {"group", width}};
        expect_cuda_matches("fake_quantize_weight_grad", {Tensor::random(DType::f32, {11, width}, ++seed), w}, grid,
                            {0, 0});
        grid.set("dtype", std::string(out));
        expect_cuda_matches("fake_quantize_weight", {w}, grid, {0, 0});
        expect_cuda_matches("quantize_tokens", {x}, {}, {0, 0});
        const std::vector<Tensor> codes = run_op("quantize_tokens", {x}).outputs;
        const Attrs to{{"dtype", std::string(out)}};
        expect_cuda_matches("dequantize_tokens", codes, to, {0, 0});
        expect_cuda_matches("quantize_tokens_grad", {x, codes[0]}, to, {0, 0});
      }
}

TEST(CudaFakeQuantize, TakesGroupsOfARow) {
  for (const int64_t bits : {4, 8})
    expect_cuda_matches("fake_quantize_weight", {Tensor::random(DType::f32, {5, 96}, 3)},
                        {{"bits", bits}, {"group", int64_t{32}}}, {0, 0});
}

TEST(CudaFakeQuantize, WhatIsNotFiniteIsNotHidden) {
  Tensor x = Tensor::random(DType::f32, {1, 3, 64}, 3);
  x.set(70, NAN);
  const std::vector<Tensor> codes = run_cuda_op("quantize_tokens", {x}).outputs;
  const Tensor y = run_cuda_op("dequantize_tokens", codes).outputs[0];
  for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(std::isnan(y.at(i)), i / 64 == 1);
}

TEST(CudaFakeQuantize, TheGradientMayTakeTheCotangentsPlace) {
  const Tensor x = Tensor::random(DType::bf16, {1, 7, 50}, 5);
  expect_same_in_place("quantize_tokens_grad", {x, run_op("quantize_tokens", {x}).outputs[0]});
}

}  // namespace
}  // namespace headroom::fake_quantize_on_cuda
