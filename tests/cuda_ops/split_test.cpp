#include <fmt/format.h>

#include "cuda_shim/cuda_harness.h"

namespace headroom::split_on_cuda {
namespace {

using namespace op_test;

std::string list(const std::vector<int64_t>& sizes) { return fmt::format("{}", fmt::join(sizes, ",")); }

const std::vector<std::vector<int64_t>> kSizes = {{5},    {64, 16, 16}, {8, 4},
                                                  {2, 6}, {3, 1, 7},    {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};

TEST(CudaSplit, AgreesWithTheReference) {
  for (const std::vector<int64_t>& sizes : kSizes)
    for (DType dtype : kFloats)
      for (int64_t groups : {1, 3}) {
        int64_t width = 0;
        for (int64_t size : sizes) width += groups * size;
        expect_cuda_matches("split", {Tensor::random(dtype, {2, 5, width}, 1)},
                            {{"sizes", list(sizes)}, {"groups", groups}}, {0, 0});
      }
}

TEST(CudaConcat, AgreesWithTheReference) {
  for (const std::vector<int64_t>& sizes : kSizes)
    for (DType dtype : kFloats)
      for (int64_t groups : {1, 3}) {
        std::vector<Tensor> parts;
        for (int64_t size : sizes) parts.push_back(Tensor::random(dtype, {2, 5, groups * size}, 1));
        expect_cuda_matches("concat", parts, {{"groups", groups}}, {0, 0});
      }
}

TEST(CudaConcat, FillsAbsentPartsWithZeros) {
  expect_cuda_matches("concat", {Tensor::random(DType::bf16, {3, 4}, 1), Tensor::random(DType::bf16, {3, 2}, 2)},
                      {{"sizes", std::string("3,4,8,2")}, {"present", std::string("0101")}}, {0, 0});
}

}  // namespace
}  // namespace headroom::split_on_cuda
