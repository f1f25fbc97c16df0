// GELU and the soft cap.
#include "cuda_ops/in_place.h"

namespace headroom::activations_on_cuda {
namespace {

using namespace op_test;

Tolerance tolerance(DType dtype) { return {2e-6, dtype == DType::f32 ? 5e-6 : 8e-3}; }

TEST(CudaGelu, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    for (const char* approximate : {"none", "tanh"})
      for (double scale : {0.1, 3.0, 30.0}) {
        const Attrs attrs{{"approximate", std::string(approximate)}};
        const std::vector<Tensor> in{Tensor::random(dtype, {1, 1029}, 1, scale), Tensor::random(dtype, {1, 1029}, 2)};
        expect_cuda_matches("gelu", {in[0]}, attrs, tolerance(dtype));
        expect_cuda_matches("gelu_grad", in, attrs, tolerance(dtype));
        expect_same_in_place("gelu_grad", in, attrs);
      }
}

TEST(CudaSoftcap, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    for (double scale : {1.0, 100.0, 1e30}) {
      const Attrs attrs{{"cap", 30.0}};
      const std::vector<Tensor> in{Tensor::random(dtype, {1, 1029}, 1, 30), Tensor::random(dtype, {1, 1029}, 2)};
      expect_cuda_matches("softcap", {Tensor::random(dtype, {1, 1029}, 1, scale)}, attrs, tolerance(dtype));
      expect_cuda_matches("softcap_grad", in, attrs, tolerance(dtype));
      expect_same_in_place("softcap_grad", in, attrs);
    }
}

}  // namespace
}  // namespace headroom::activations_on_cuda
