#include "cuda_shim/cuda_harness.h"

namespace headroom::sequence_on_cuda {
namespace {

using namespace op_test;

TEST(CudaSequenceLengths, AgreesWithTheReference) {
  for (int64_t seq : {1, 31, 100}) {
    Tensor ids(DType::i32, {4, seq});
    for (int64_t i = 0; i < 4 * seq; ++i) ids.set(i, i / seq == 0 || i % seq > seq * (i / seq) / 4 ? 0 : i % 7);
    expect_cuda_matches("sequence_lengths", {ids}, {{"pad", int64_t{0}}}, {0, 0});
    expect_cuda_matches("padding_starts", {ids}, {{"pad", int64_t{0}}}, {0, 0});
    expect_cuda_matches("zero_ids", {ids}, {}, {0, 0});
    expect_cuda_matches("next_labels", {ids}, {}, {0, 0});
  }
}

TEST(CudaSelectLast, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    for (double index : {-1.0, 0.0, 3.0, 9.0})
      expect_cuda_matches("select_last",
                          {Tensor::random(dtype, {1, 5, 600}, 1), Tensor::filled(DType::i32, {1}, index)}, {}, {0, 0});
}

TEST(CudaSelectRows, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    expect_cuda_matches("select_rows",
                        {Tensor::random(dtype, {5, 1, 600}, 1), Tensor(DType::i32, {6}, {4, 0, -1, 5, 2, 2})}, {},
                        {0, 0});
}

}  // namespace
}  // namespace headroom::sequence_on_cuda
