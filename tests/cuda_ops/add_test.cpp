#include "cuda_shim/cuda_harness.h"

namespace headroom::add_on_cuda {
namespace {

using namespace op_test;

TEST(CudaAdd, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    for (int64_t count : {1, 7, 8, 255, 4096, 10007})
      expect_cuda_matches("add", {Tensor::random(dtype, {count}, 1), Tensor::random(dtype, {count}, 2)});
}

}  // namespace
}  // namespace headroom::add_on_cuda
