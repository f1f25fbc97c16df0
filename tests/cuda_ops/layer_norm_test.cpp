#include "cuda_ops/in_place.h"

namespace headroom::layer_norm_on_cuda {
namespace {

using namespace op_test;

Tolerance tolerance(DType dtype) { return {2e-5, dtype == DType::f32 ? 1e-5 : 8e-3}; }

const std::vector<std::pair<int64_t, int64_t>> kShapes = {{3, 3},   {70, 8},   {5, 37},   {19, 128},
                                                          {9, 512}, {17, 520}, {1, 8200}, {2, 8195}};

TEST(CudaLayerNorm, AgreesWithTheReference) {
  for (const auto& [rows, width] : kShapes)
    for (DType x : kFloats)
      for (const char* y : names_with(x)) {
        SCOPED_TRACE(width);
        expect_cuda_matches("layer_norm",
                            {Tensor::random(x, {1, rows, width}, 1, 3), Tensor::random(DType::f32, {width}, 2),
                             Tensor::random(DType::f32, {width}, 3)},
                            {{"eps", 1e-5}, {"dtype", std::string(y)}}, tolerance(*parse_dtype(y)));
      }
}

// A mean far from zero must not destroy the variance.
TEST(CudaLayerNorm, KeepsTheVarianceBesideALargeMean) {
  Tensor x = Tensor::random(DType::f32, {4, 200}, 1);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, x.at(i) + 1000);
  expect_cuda_matches("layer_norm", {x, Tensor::filled(DType::f32, {200}, 1), Tensor::filled(DType::f32, {200}, 0)},
                      {{"eps", 1e-5}}, {1e-3, 1e-3});
}

std::vector<Tensor> grad_inputs(DType x, DType dy, int64_t rows, int64_t width, int64_t train, bool addend) {
  std::vector<Tensor> inputs{Tensor::random(x, {1, rows, width}, 1), Tensor::random(DType::f32, {width}, 2),
                             Tensor::random(dy, {1, rows, width}, 3)};
  if (train & 1) inputs.push_back(Tensor::random(DType::f32, {width}, 4));
  if (train & 2) inputs.push_back(Tensor::random(DType::f32, {width}, 5));
  if (addend) inputs.push_back(Tensor::random(x, {1, rows, width}, 6));
  return inputs;
}

Attrs grad_attrs(int64_t train, bool addend) { return {{"eps", 1e-5}, {"train", train}, {"addend", int64_t{addend}}}; }

TEST(CudaLayerNormGrad, AgreesWithTheReference) {
  int turn = 0;
  for (const auto& [rows, width] : kShapes)
    for (DType x : kFloats)
      for (DType dy : floats_with(x))
        for (int64_t train : {0, 1, 2, 3}) {
          if (width > 100 && (x != dy || train % 3 != 0)) continue;
          if (width > 1000 && (x == DType::f32 || train == 0)) continue;
          SCOPED_TRACE(width);
          const bool addend = ++turn % 2 == 0;
          expect_cuda_matches("layer_norm_grad", grad_inputs(x, dy, rows, width, train, addend),
                              grad_attrs(train, addend), {5e-5, tolerance(x).relative});
        }
}

TEST(CudaLayerNormGrad, AccumulatesOverTrips) {
  for (int64_t trip : {0, 1})
    for (const char* bias : {"carried", "always"}) {
      RunOptions options;
      options.trip = trip;
      Attrs attrs = grad_attrs(3, false);
      attrs.set("accumulate", std::string("carried"));
      attrs.set("accumulate_bias", std::string(bias));
      expect_cuda_matches("layer_norm_grad", grad_inputs(DType::f32, DType::f32, 40, 96, 3, false), attrs, {5e-5, 1e-5},
                          options);
    }
}

TEST(CudaLayerNormGrad, WorksInPlace) {
  for (bool addend : {false, true})
    expect_same_in_place("layer_norm_grad", grad_inputs(DType::f32, DType::f32, 20, 144, 3, addend),
                         grad_attrs(3, addend));
}

}  // namespace
}  // namespace headroom::layer_norm_on_cuda
