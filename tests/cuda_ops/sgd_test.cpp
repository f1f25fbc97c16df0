#include <cmath>

#include "cuda_ops/random.h"

namespace headroom::sgd_on_cuda {
namespace {

using namespace op_test;

std::vector<Tensor> inputs(DType weight, int64_t count, double clip, bool momentum, bool copy) {
  std::vector<Tensor> all{Tensor::random(weight, {count}, 1), Tensor::random(DType::f32, {count}, 2)};
  if (momentum) all.push_back(Tensor::random(DType::f32, {count}, 3, 0.1));
  all.push_back(hyper_of(1, 3));
  all.push_back(Tensor::filled(DType::f32, {1}, clip));
  if (copy) all.push_back(Tensor::random(DType::bf16, {count}, 5));
  return all;
}

Attrs attrs_of(double momentum, bool nesterov) {
  return {{"momentum", momentum}, {"nesterov", int64_t{nesterov}}, {"decay", int64_t{1}}, {"tensor", int64_t{77}}};
}

TEST(CudaSgd, AgreesWithTheReference) {
  for (int64_t count : {1, 6, 1027, 5000})
    for (bool copy : {false, true})
      for (const auto& [momentum, nesterov] : {std::pair{0.0, false}, {0.9, false}, {0.9, true}}) {
        const std::vector<Tensor> in = inputs(DType::f32, count, 0.7, momentum > 0, copy);
        const Attrs attrs = attrs_of(momentum, nesterov);
        const RunResult expected = run_op("sgd", in, attrs), found = run_cuda_op("sgd", in, attrs);
        for (size_t i = 0; i < (momentum > 0 ? 2 : 1); ++i)
          expect_close(found.outputs[i], expected.outputs[i], 1e-7, 2e-6);
        if (copy) expect_close(found.outputs.back(), found.outputs[0], 0, 4e-3);
      }
}

TEST(CudaSgd, NarrowWeightsAgreeWithTheReference) {
  const std::vector<Tensor> in = inputs(DType::bf16, 4099, 0.7, true, false);
  const RunResult expected = run_op("sgd", in, attrs_of(0.9, true)),
                  found = run_cuda_op("sgd", in, attrs_of(0.9, true));
  int64_t other = 0;
  for (int64_t i = 0; i < 4099; ++i) other += found.outputs[0].at(i) != expected.outputs[0].at(i);
  EXPECT_LE(other, 8);  // an ulp of f32 may change which way a draw rounds
  expect_close(found.outputs[0], expected.outputs[0], 1e-7, 8e-3);
}

TEST(CudaSgd, LeavesOutAStepWhoseNormIsNotFinite) {
  for (DType weight : kFloats) {
    const std::vector<Tensor> in = inputs(weight, 100, NAN, true, false);
    const RunResult found = run_cuda_op("sgd", in, attrs_of(0.9, false));
    expect_same_bytes(found.outputs[0], in[0]);
    expect_same_bytes(found.outputs[1], in[2]);
  }
}

}  // namespace
}  // namespace headroom::sgd_on_cuda
