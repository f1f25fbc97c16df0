#include <cmath>

#include "cuda_ops/random.h"

namespace headroom::adafactor_on_cuda {
namespace {

using namespace op_test;

std::vector<Tensor> inputs(DType weight, std::vector<int64_t> dims, double beta1, double clip, bool copy) {
  std::vector<Tensor> all{Tensor::random(weight, dims, 1), Tensor::random(DType::f32, dims, 2)};
  if (dims.size() > 1) all.push_back(Tensor::filled(DType::f32, {dims.begin(), dims.end() - 1}, 0.3));
  std::vector<int64_t> cols = dims;
  if (dims.size() > 1) cols.erase(cols.end() - 2);
  all.push_back(Tensor::filled(DType::f32, cols, 0.2));
  if (beta1 > 0) all.push_back(Tensor::random(DType::f32, dims, 3, 0.01));
  Tensor hyper = hyper_of(1, 3);
  hyper.set(kOwnScalar[0], 0.4);
  hyper.set(kOwnScalar[1], 0.02);
  all.push_back(hyper);
  all.push_back(Tensor::filled(DType::f32, {1}, clip));
  if (copy) all.push_back(Tensor::random(DType::bf16, dims, 5));
  return all;
}

Attrs attrs_of(const std::vector<int64_t>& dims, double beta1, int64_t scales) {
  return {{"beta1", beta1},
          {"eps1", 1e-30},
          {"eps2", 1e-3},
          {"clip_threshold", 0.7},
          {"scale_parameter", scales},
          {"relative_step", 1 - scales},
          {"decay", int64_t{1}},
          {"tensor", int64_t{77}},
          {"factored", int64_t{dims.size() > 1}}};
}

TEST(CudaAdafactor, AgreesWithTheReference) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{37}, {5, 1}, {7, 33}, {2, 9, 300}})
    for (const double beta1 : {0.0, 0.9})
      for (const bool copy : {false, true}) {
        const std::vector<Tensor> in = inputs(DType::f32, dims, beta1, 0.7, copy);
        const Attrs attrs = attrs_of(dims, beta1, copy);
        RunOptions plain;
        plain.only = "reference";
        const RunResult expected = run_op("adafactor", in, attrs, plain), found = run_cuda_op("adafactor", in, attrs);
        for (size_t i = 0; i < expected.outputs.size() - copy; ++i)
          expect_close(found.outputs[i], expected.outputs[i], 2e-6, 2e-5);
        if (copy) expect_close(found.outputs.back(), found.outputs[0], 0, 4e-3);
      }
}

TEST(CudaAdafactor, NarrowWeightsAgreeWithTheReference) {
  const std::vector<Tensor> in = inputs(DType::bf16, {40, 100}, 0, 0.7, false);
  const Attrs attrs = attrs_of({40, 100}, 0, 1);
  const RunResult expected = run_op("adafactor", in, attrs), found = run_cuda_op("adafactor", in, attrs);
  int64_t other = 0;
  for (int64_t i = 0; i < 4000; ++i) other += found.outputs[0].at(i) != expected.outputs[0].at(i);
  EXPECT_LE(other, 8);  // an ulp of f32 may cross a rounding threshold
}

TEST(CudaAdafactor, LeavesOutAStepWhoseNormIsNotFinite) {
  const std::vector<Tensor> in = inputs(DType::f32, {7, 9}, 0.9, NAN, false);
  const RunResult found = run_cuda_op("adafactor", in, attrs_of({7, 9}, 0.9, 1));
  expect_same_bytes(found.outputs[0], in[0]);
  for (size_t k = 1; k < found.outputs.size(); ++k) expect_same_bytes(found.outputs[k], in[k + 1]);
}

TEST(CudaAdafactor, ASkippedStepRefreshesTheCopy) {
  const std::vector<Tensor> in = inputs(DType::f32, {7, 300}, 0.9, NAN, true);
  const RunResult found = run_cuda_op("adafactor", in, attrs_of({7, 300}, 0.9, 1));
  expect_same_bytes(found.outputs.back(), rounded(in[0], DType::bf16));
}

}  // namespace
}  // namespace headroom::adafactor_on_cuda
