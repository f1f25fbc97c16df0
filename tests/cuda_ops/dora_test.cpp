// Weight-decomposed adapters on a device, against the reference.
#include "cuda_ops/in_place.h"

namespace headroom::dora_on_cuda {
namespace {

using namespace op_test;

Tolerance tolerance(DType dtype) { return dtype == DType::f32 ? Tolerance{1e-5, 1e-5} : Tolerance{1e-2, 8e-3}; }

TEST(CudaRowLengths, AgreesWithTheReference) {
  for (const auto& [outs, ins, rank] : {std::array<int64_t, 3>{1, 1, 1}, {17, 37, 3}, {8, 1100, 5}, {20, 128, 16}})
    for (DType weight : kFloats)
      for (DType matrices : floats_with(weight)) {
        SCOPED_TRACE(ins);
        expect_cuda_matches("row_lengths",
                            {Tensor::random(weight, {outs, ins}, 1), Tensor::random(matrices, {rank, ins}, 2),
                             Tensor::random(matrices, {outs, rank}, 3)},
                            {{"factor", 0.75}}, {1e-6, 1e-5});
      }
}

std::vector<Tensor> operands(DType z, DType y, int64_t rows, int64_t width, bool bias, bool residual) {
  std::vector<Tensor> in{Tensor::random(z, {1, rows, width}, 1), Tensor::random(DType::f32, {width}, 2),
                         Tensor::filled(DType::f32, {width}, 1.5)};
  in[2].set(width / 2, 0);
  if (bias) in.push_back(Tensor::random(DType::f32, {width}, 3));
  if (residual) in.push_back(Tensor::random(y, {1, rows, width}, 4));
  return in;
}

const std::vector<std::pair<int64_t, int64_t>> kShapes = {{3, 1},   {70, 8},   {5, 37},   {19, 128},
                                                          {9, 512}, {17, 520}, {1, 8200}, {2, 8195}};

TEST(CudaMagnitude, AgreesWithTheReference) {
  for (const auto& [rows, width] : kShapes)
    for (DType z : kFloats)
      for (DType y : floats_with(z))
        for (int parts : {0, 1, 2, 3}) {
          SCOPED_TRACE(width);
          const bool bias = parts % 2 != 0, residual = parts / 2 != 0;
          expect_cuda_matches(
              "magnitude", operands(z, y, rows, width, bias, residual),
              {{"bias", int64_t{bias}}, {"residual", int64_t{residual}}, {"dtype", std::string(dtype_name(y))}},
              tolerance(y));
        }
}

TEST(CudaMagnitude, WorksInPlace) {
  for (bool residual : {false, true})
    expect_same_in_place("magnitude", operands(DType::bf16, DType::bf16, 5, 72, true, residual),
                         {{"bias", int64_t{1}}, {"residual", int64_t{residual}}});
}

std::vector<Tensor> gradient_operands(DType z, DType dy, int64_t rows, int64_t width) {
  std::vector<Tensor> in = operands(z, z, rows, width, false, false);
  in.insert(in.begin(), Tensor::random(dy, {1, rows, width}, 5));
  in.push_back(Tensor::random(DType::f32, {width}, 6));
  return in;
}

TEST(CudaMagnitudeGrad, AgreesWithTheReference) {
  for (const auto& [rows, width] : kShapes)
    for (DType z : kFloats)
      for (DType dy : floats_with(z))
        for (int64_t trip : {0, 1}) {
          SCOPED_TRACE(width);
          Attrs attrs{{"accumulate", "carried"}};
          if (z != dy) attrs.set("dtype", std::string(dtype_name(z)));
          RunOptions options;
          options.trip = trip;
          expect_cuda_matches("magnitude_grad", gradient_operands(z, dy, rows, width), attrs,
                              {z == DType::f32 ? 3e-5 : 1e-2, z == DType::f32 ? 1e-5 : 8e-3}, options);
        }
}

TEST(CudaMagnitudeGrad, WorksInPlace) {
  expect_same_in_place("magnitude_grad", gradient_operands(DType::bf16, DType::bf16, 40, 96), {});
}

}  // namespace
}  // namespace headroom::dora_on_cuda
