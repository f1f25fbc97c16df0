#include "cuda_shim/cuda_harness.h"

namespace headroom::accumulate_on_cuda {
namespace {

using namespace op_test;

TEST(CudaAccumulate, AgreesWithTheReference) {
  for (DType dtype : {DType::f32, DType::f64})
    for (int64_t count : {1, 5, 3000})
      for (const char* accumulate : {"always", "carried"})
        for (int64_t trip : {0, 1}) {
          RunOptions options;
          options.trip = trip;
          expect_cuda_matches("accumulate", {Tensor::random(dtype, {count}, 1), Tensor::random(dtype, {count}, 2)},
                              {{"accumulate", std::string(accumulate)}}, {0, 0}, options);
        }
}

TEST(CudaZeroFill, ClearsWhateverWasThere) {
  expect_cuda_matches("zero_fill", {Tensor::filled(DType::f32, {37}, NAN)}, {}, {0, 0});
}

}  // namespace
}  // namespace headroom::accumulate_on_cuda
