#include "cuda_ops/in_place.h"

namespace headroom::rms_norm_on_cuda {
namespace {

using namespace op_test;

Tolerance tolerance(DType dtype) { return dtype == DType::f32 ? Tolerance{1e-5, 1e-5} : Tolerance{1e-5, 8e-3}; }

// Rows and widths for all distributions of rows to threads: groups of 8, 16 and 32, whole blocks, wider than registers
// hold.
const std::vector<std::pair<int64_t, int64_t>> kShapes = {{3, 1},   {70, 8},   {5, 37},   {19, 128},
                                                          {9, 512}, {17, 520}, {1, 8200}, {2, 8195}};

TEST(CudaRmsNorm, AgreesWithTheReference) {
  for (const auto& [rows, width] : kShapes)
    for (DType x : kFloats)
      for (const char* y : names_with(x)) {
        SCOPED_TRACE(width);
        expect_cuda_matches(
            "rms_norm", {Tensor::random(x, {1, rows, width}, 1), Tensor::random(DType::f32, {width}, 2)},
            {{"eps", 1e-6}, {"dtype", std::string(y)}, {"unit", int64_t{rows % 2}}}, tolerance(*parse_dtype(y)));
      }
}

TEST(CudaRmsNorm, NormalisesEachHeadByItself) {
  expect_cuda_matches("rms_norm", {Tensor::random(DType::bf16, {2, 5, 192}, 1), Tensor::random(DType::f32, {64}, 2)},
                      {{"eps", 1e-5}}, tolerance(DType::bf16));
}

TEST(CudaRmsNorm, WorksInPlace) {
  expect_same_in_place("rms_norm", {Tensor::random(DType::bf16, {1, 8200}, 1), Tensor::random(DType::f32, {8200}, 2)},
                       {{"eps", 1e-6}});
}

// With a residual: bitwise the norm followed by the addition; also in place of either operand.
TEST(CudaRmsNorm, AddsAResidual) {
  for (const auto& [rows, width] : kShapes)
    for (DType x : kFloats)
      for (DType y : floats_with(x)) {
        SCOPED_TRACE(width);
        const std::vector<Tensor> norm{Tensor::random(x, {1, rows, width}, 1), Tensor::random(DType::f32, {width}, 2)};
        const Tensor residual = Tensor::random(y, {1, rows, width}, 3);
        Attrs attrs{{"eps", 1e-6}, {"dtype", std::string(dtype_name(y))}, {"unit", int64_t{rows % 2}}};
        const Tensor alone = run_cuda_op("rms_norm", norm, attrs).outputs[0];
        const Tensor apart = run_cuda_op("add", {residual, alone}).outputs[0];
        attrs.set("residual", int64_t{1});
        const std::vector<Tensor> inputs{norm[0], norm[1], residual};
        expect_same_bytes(run_cuda_op("rms_norm", inputs, attrs).outputs[0], apart);
        expect_same_in_place("rms_norm", inputs, attrs);
        expect_cuda_matches("rms_norm", inputs, attrs, tolerance(y));
      }
}

std::vector<Tensor> grad_inputs(DType x, DType dy, int64_t rows, int64_t width, bool train, bool addend) {
  std::vector<Tensor> inputs{Tensor::random(x, {1, rows, width}, 1), Tensor::random(DType::f32, {width}, 2),
                             Tensor::random(dy, {1, rows, width}, 3)};
  if (train) inputs.push_back(Tensor::random(DType::f32, {width}, 4));
  if (addend) inputs.push_back(Tensor::random(x, {1, rows, width}, 5));
  return inputs;
}

Attrs grad_attrs(bool train, bool addend, const char* accumulate) {
  return {
      {"eps", 1e-6}, {"train", int64_t{train}}, {"addend", int64_t{addend}}, {"accumulate", std::string(accumulate)}};
}

// The bf16 copy is dx, rounded.
TEST(CudaRmsNormGrad, WritesANarrowCopy) {
  for (const auto& [rows, width] : kShapes)
    for (bool train : {false, true}) {
      SCOPED_TRACE(width);
      Attrs attrs = grad_attrs(train, rows % 2 == 0, "always");
      const std::vector<Tensor> inputs = grad_inputs(DType::f32, DType::bf16, rows, width, train, rows % 2 == 0);
      const std::vector<Tensor> alone = run_cuda_op("rms_norm_grad", inputs, attrs).outputs;
      attrs.set("narrow", int64_t{1});
      const std::vector<Tensor> both = run_cuda_op("rms_norm_grad", inputs, attrs).outputs;
      ASSERT_EQ(both.size(), alone.size() + 1);
      for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(both[i].same_bytes(alone[i])) << i;
      EXPECT_TRUE(both.back().same_bytes(run_cuda_op("cast", {alone[0]}, {{"dtype", "bf16"}}).outputs[0]));
      expect_cuda_matches("rms_norm_grad", inputs, attrs, {3e-5, 8e-3});
    }
}

TEST(CudaRmsNormGrad, AgreesWithTheReference) {
  for (const auto& [rows, width] : kShapes)
    for (DType x : kFloats)
      for (DType dy : floats_with(x))
        for (bool train : {false, true}) {
          if (width > 1000 && (x != DType::bf16 || x != dy || !train)) continue;
          SCOPED_TRACE(width);
          const bool addend = (rows + train) % 2 == 0;
          Tolerance near = tolerance(x);
          near.absolute = 3e-5;
          expect_cuda_matches("rms_norm_grad", grad_inputs(x, dy, rows, width, train, addend),
                              grad_attrs(train, addend, "always"), near);
        }
}

TEST(CudaRmsNormGrad, AccumulatesOverTrips) {
  for (int64_t trip : {0, 1}) {
    RunOptions options;
    options.trip = trip;
    expect_cuda_matches("rms_norm_grad", grad_inputs(DType::f32, DType::f32, 40, 96, true, false),
                        grad_attrs(true, false, "carried"), {3e-5, 1e-5}, options);
  }
}

TEST(CudaRmsNormGrad, TakesTheWeightLessOneAndHeads) {
  Attrs attrs = grad_attrs(true, false, "always");
  attrs.set("unit", int64_t{1});
  expect_cuda_matches("rms_norm_grad",
                      {Tensor::random(DType::f32, {2, 9, 192}, 1), Tensor::random(DType::f32, {64}, 2),
                       Tensor::random(DType::f32, {2, 9, 192}, 3), Tensor::random(DType::f32, {64}, 4)},
                      attrs, {3e-5, 1e-5});
}

TEST(CudaRmsNormGrad, WorksInPlace) {
  for (bool addend : {false, true})
    expect_same_in_place("rms_norm_grad", grad_inputs(DType::f32, DType::f32, 20, 144, true, addend),
                         grad_attrs(true, addend, "always"));
}

}  // namespace
}  // namespace headroom::rms_norm_on_cuda
