#include <cmath>

#include "cuda_shim/cuda_harness.h"
#include "ops/step_scalars.h"

namespace headroom::reduce_on_cuda {
namespace {

using namespace op_test;

TEST(CudaSumSquares, AgreesWithTheReference) {
  for (int64_t count : {1, 3, 1023, 16384, 16389, 40001})
    for (const char* accumulate : {"always", "first"})
      expect_cuda_matches("sum_squares", {Tensor::random(DType::f32, {count}, 1), Tensor::filled(DType::f64, {1}, 3.5)},
                          {{"accumulate", std::string(accumulate)}}, {0, 1e-13});
}

TEST(CudaSumSquares, KeepsWhatF32CannotSquare) {
  expect_cuda_matches("sum_squares", {Tensor::filled(DType::f32, {5}, 1e25), Tensor::filled(DType::f64, {1}, 0)}, {},
                      {0, 1e-13});
}

Tensor hyper(int64_t at, double value) {
  Tensor vector = Tensor::filled(DType::f32, {kHyperCount}, 0);
  vector.set(at, value);
  return vector;
}

TEST(CudaClipCoefficient, AgreesWithTheReference) {
  for (double limit : {0.0, 1.0, 50.0})
    for (double squares : {0.0, 4.0, 1e6, 1e77, static_cast<double>(INFINITY), static_cast<double>(NAN)})
      expect_cuda_matches("clip_coefficient", {Tensor::filled(DType::f64, {1}, squares), hyper(kMaxGradNorm, limit)},
                          {}, {0, 0});
}

TEST(CudaClipCoefficient, TakesTheLossScaleBack) {
  for (double limit : {0.0, 1.0, 50.0})
    for (double squares : {0.0, 4.0, 1e12, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
      Tensor scalars = hyper(kMaxGradNorm, limit);
      scalars.set(kUnscale, 1.0 / 1024);
      expect_cuda_matches("clip_coefficient", {Tensor::filled(DType::f64, {1}, squares), scalars},
                          {{"scaled", int64_t{1}}}, {0, 1e-6});
    }
}

TEST(CudaLossScale, IsTheHostsNumber) { expect_cuda_matches("loss_scale", {hyper(kLossScale, 0.125)}, {}, {0, 0}); }

}  // namespace
}  // namespace headroom::reduce_on_cuda
