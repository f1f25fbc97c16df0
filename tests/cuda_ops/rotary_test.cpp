#include "cuda_ops/in_place.h"

namespace headroom::rotary_on_cuda {
namespace {

using namespace op_test;

struct Shape {
  int64_t batch, seq, heads, head_dim, turned;
};

const std::vector<Shape> kShapes = {{1, 1, 1, 2, 2},   {2, 5, 3, 16, 16}, {1, 7, 2, 64, 64},
                                    {2, 3, 4, 40, 16}, {1, 4, 3, 10, 6},  {1, 3, 2, 24, 8}};

std::vector<Tensor> inputs(DType dtype, const Shape& s) {
  return {Tensor::random(dtype, {s.batch, s.seq, s.heads * s.head_dim}, 1),
          Tensor::random(DType::f32, {9, s.turned}, 2)};
}

Tolerance tolerance(DType dtype) { return dtype == DType::f32 ? Tolerance{3e-7, 1e-6} : Tolerance{1e-6, 8e-3}; }

TEST(CudaRotary, AgreesWithTheReference) {
  for (const Shape& s : kShapes)
    for (DType dtype : kFloats)
      for (int64_t inverse : {0, 1})
        expect_cuda_matches("rotary", inputs(dtype, s), {{"heads", s.heads}, {"inverse", inverse}}, tolerance(dtype));
}

TEST(CudaRotary, ShiftsAndClampsPositions) {
  for (const Shape& s : kShapes)
    for (double offset : {-3.0, 4.0, 100.0}) {
      std::vector<Tensor> in = inputs(DType::f32, s);
      in.push_back(Tensor::filled(DType::i32, {1}, offset));
      expect_cuda_matches("rotary", in, {{"heads", s.heads}, {"offset", int64_t{1}}}, tolerance(DType::f32));
    }
}

TEST(CudaRotary, StartsSegmentsAnew) {
  for (const Shape& s : kShapes) {
    std::vector<Tensor> in = inputs(DType::bf16, s);
    Tensor starts(DType::i32, {s.batch, s.seq});
    for (int64_t i = 0; i < starts.count(); ++i) starts.set(i, static_cast<double>(i % s.seq / 3 * 3));
    in.push_back(starts);
    expect_cuda_matches("rotary", in, {{"heads", s.heads}, {"segments", int64_t{1}}}, tolerance(DType::bf16));
  }
}

TEST(CudaRotary, WorksInPlace) {
  for (const Shape& s : kShapes) expect_same_in_place("rotary", inputs(DType::bf16, s), {{"heads", s.heads}});
}

TEST(CudaRopeTable, AgreesWithTheReference) {
  const Attrs plain{{"positions", int64_t{300}}, {"head_dim", int64_t{10}}, {"theta", 10000.0}};
  expect_cuda_matches("rope_table", {}, plain, {1e-6, 1e-6});
  Attrs scaled = plain;
  scaled.set("scaling", std::string("longrope"));
  scaled.set("factors", std::string("1,1.5,2,4,8"));
  scaled.set("amplitude", 1.19);
  expect_cuda_matches("rope_table", {}, scaled, {1e-6, 1e-6});
  expect_cuda_matches("rope_table", {Tensor::random(DType::f32, {300, 10}, 1)}, plain, {1e-6, 1e-6});
}

}  // namespace
}  // namespace headroom::rotary_on_cuda
