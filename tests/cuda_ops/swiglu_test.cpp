#include "cuda_ops/in_place.h"

namespace headroom::swiglu_on_cuda {
namespace {

using namespace op_test;

Tolerance tolerance(DType dtype) { return dtype == DType::f32 ? Tolerance{2e-6, 5e-6} : Tolerance{1e-6, 8e-3}; }

std::vector<Tensor> inputs(DType dtype, int64_t count, double scale, int n) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < n; ++i)
    tensors.push_back(Tensor::random(dtype, {1, count}, static_cast<uint64_t>(i + 1), i == 0 ? scale : 1.0));
  return tensors;
}

TEST(CudaSwiglu, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    for (const char* activation : {"silu", "gelu", "gelu_tanh"})
      for (const auto& [count, scale] :
           std::vector<std::pair<int64_t, double>>{{1, 1}, {7, 4}, {1029, 8}, {5000, 40}}) {
        const Attrs attrs{{"activation", std::string(activation)}};
        expect_cuda_matches("swiglu", inputs(dtype, count, scale, 2), attrs, tolerance(dtype));
        expect_cuda_matches("swiglu_grad", inputs(dtype, count, scale, 3), attrs, tolerance(dtype));
      }
}

TEST(CudaSwiglu, StaysFiniteFarOut) {
  for (const char* activation : {"silu", "gelu", "gelu_tanh"})
    for (double x : {-1e30, -200.0, 200.0, 1e30}) {
      const Attrs attrs{{"activation", std::string(activation)}};
      const Tensor gate = Tensor::filled(DType::f32, {1, 9}, x), one = Tensor::filled(DType::f32, {1, 9}, 1);
      expect_cuda_matches("swiglu", {gate, one}, attrs);
      expect_cuda_matches("swiglu_grad", {gate, one, one}, attrs);
    }
}

TEST(CudaSwiglu, WorksInPlace) {
  expect_same_in_place("swiglu", inputs(DType::bf16, 1029, 4, 2));
  expect_same_in_place("swiglu_grad", inputs(DType::f32, 1029, 4, 3));
}

}  // namespace
}  // namespace headroom::swiglu_on_cuda
