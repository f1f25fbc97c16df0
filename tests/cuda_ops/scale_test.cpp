#include "cuda_ops/in_place.h"

namespace headroom::scale_on_cuda {
namespace {

using namespace op_test;

TEST(CudaScale, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    for (int64_t count : {1, 7, 4100})
      expect_cuda_matches("scale", {Tensor::random(dtype, {count}, 1)}, {{"factor", 0.3}},
                          {0, dtype == DType::f32 ? 1e-6 : 8e-3});
}

TEST(CudaScale, WorksInPlace) {
  expect_same_in_place("scale", {Tensor::random(DType::bf16, {1, 1000}, 1)}, {{"factor", -7.5}});
}

}  // namespace
}  // namespace headroom::scale_on_cuda
