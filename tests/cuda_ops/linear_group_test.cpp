#include "cuda_shim/cuda_harness.h"

namespace headroom::linear_group_on_cuda {
namespace {

using namespace op_test;

TEST(CudaLinearGroup, AgreesWithTheReference) {
  set_threads(1);
  for (const int64_t rows : {1, 9})
    for (const DType dtype : kFloats)
      for (const bool bias : {false, true}) {
        SCOPED_TRACE(fmt::format("{} rows, {}, bias {}", rows, dtype_name(dtype), bias));
        std::vector<Tensor> inputs{Tensor::random(dtype, {1, rows, 24}, 1)};
        for (const int64_t outs : {33, 8, 8}) inputs.push_back(Tensor::random(dtype, {outs, 24}, 2));
        if (bias)
          for (const int64_t outs : {33, 8, 8}) inputs.push_back(Tensor::random(DType::f32, {outs}, 3));
        expect_cuda_matches("linear_group", inputs, {{"bias", int64_t{bias}}},
                            dtype == DType::f32 ? Tolerance{3e-5, 1e-5} : Tolerance{2e-2, 1e-2});
      }
}

}  // namespace
}  // namespace headroom::linear_group_on_cuda
