#include <cmath>

#include "cuda_ops/random.h"

namespace headroom::adamw_on_cuda {
namespace {

using namespace op_test;

const Attrs kAttrs{
    {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"decay", int64_t{1}}, {"tensor", int64_t{1234567891234}}};

// `copy`: of the copy of the weight; f32 for none.
std::vector<Tensor> inputs(DType weight, int64_t count, double clip, DType copy, const Tensor& hyper) {
  Tensor v = Tensor::random(DType::f32, {count}, 4, 1e-2);
  for (int64_t i = 0; i < count; ++i) v.set(i, std::abs(v.at(i)));
  std::vector<Tensor> all{Tensor::random(weight, {count}, 1),
                          Tensor::random(DType::f32, {count}, 2),
                          Tensor::random(DType::f32, {count}, 3, 0.1),
                          v,
                          hyper,
                          Tensor::filled(DType::f32, {1}, clip)};
  if (copy != DType::f32) all.push_back(Tensor::random(copy, {count}, 5));
  return all;
}

TEST(CudaAdamW, AgreesWithTheReference) {
  for (int64_t count : {1, 6, 1027, 5000})
    for (DType copy : kFloats)
      for (int64_t decay : {0, 1}) {
        Attrs attrs = kAttrs;
        attrs.set("decay", decay);
        const std::vector<Tensor> in = inputs(DType::f32, count, 0.7, copy, hyper_of(1, 3));
        const RunResult expected = run_op("adamw", in, attrs), found = run_cuda_op("adamw", in, attrs);
        for (size_t i = 0; i < 3; ++i) expect_close(found.outputs[i], expected.outputs[i], 1e-7, 2e-6);
        if (copy != DType::f32) expect_same_bytes(found.outputs[3], rounded(found.outputs[0], copy));
      }
}

TEST(CudaAdamW, LeavesOutAStepWhoseNormIsNotFinite) {
  for (DType weight : kFloats)
    for (double clip : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      const std::vector<Tensor> in = inputs(weight, 100, clip, DType::f32, hyper_of(1, 3));
      const RunResult found = run_cuda_op("adamw", in, kAttrs);
      expect_same_bytes(found.outputs[0], in[0]);
      expect_same_bytes(found.outputs[1], in[2]);
      expect_same_bytes(found.outputs[2], in[3]);
    }
}

// If the moments forget everything, the update is lr * sign(g), the same in any precision: the weight's bits show the
// random bits.
TEST(CudaAdamW, RoundsByTheDrawsOfTheReference) {
  const Attrs attrs{{"beta1", 0.0}, {"beta2", 0.0}, {"eps", 0.0}, {"decay", int64_t{0}}, {"tensor", int64_t{77}}};
  for (uint64_t seed : {uint64_t{1}, uint64_t{0xfedcba9876543210}})
    for (uint32_t step : {1u, 4000000000u}) {
      const bool tiny = step == 1u;  // fp16 numbers that are subnormal
      Tensor hyper = hyper_of(seed, step, tiny ? 1e-8 : 0.00123);
      hyper.set(kBiasCorrection1, 1);
      hyper.set(kSqrtBiasCorrection2, 1);
      for (DType weight : {DType::bf16, DType::f16}) {
        std::vector<Tensor> in = inputs(weight, 4099, 1, DType::f32, hyper);
        if (tiny) in[0] = Tensor::random(weight, {4099}, 1, 3e-5);
        for (int64_t i = 0; i < in[1].count(); ++i) in[1].set(i, in[1].at(i) < 0 ? -0.5 : 0.5);
        RunOptions plain;
        plain.only = "reference";
        const RunResult expected = run_op("adamw", in, attrs, plain), found = run_cuda_op("adamw", in, attrs);
        expect_same_bytes(found.outputs[0], expected.outputs[0]);
        EXPECT_FALSE(found.outputs[0].same_bytes(in[0]));
      }
    }
}

TEST(CudaAdamW, NarrowWeightsAgreeWithTheReference) {
  for (DType weight : {DType::bf16, DType::f16}) {
    const std::vector<Tensor> in = inputs(weight, 4099, 0.7, DType::f32, hyper_of(5, 9));
    const RunResult expected = run_op("adamw", in, kAttrs), found = run_cuda_op("adamw", in, kAttrs);
    int64_t other = 0;
    for (int64_t i = 0; i < 4099; ++i) other += found.outputs[0].at(i) != expected.outputs[0].at(i);
    EXPECT_LE(other, 8);  // an ulp of f32 may cross a rounding threshold
    expect_close(found.outputs[0], expected.outputs[0], 1e-7, 8e-3);
  }
}

}  // namespace
}  // namespace headroom::adamw_on_cuda
