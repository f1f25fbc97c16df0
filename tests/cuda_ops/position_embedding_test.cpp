#include "cuda_ops/in_place.h"

namespace headroom::position_embedding_on_cuda {
namespace {

using namespace op_test;

Tolerance tolerance(DType dtype) { return {1e-6, dtype == DType::f32 ? 1e-6 : 8e-3}; }

// Rows of 4 tokens packed into sequences.
Tensor starts(int64_t batch, int64_t seq) {
  Tensor starts(DType::i32, {batch, seq});
  for (int64_t i = 0; i < starts.count(); ++i) starts.set(i, static_cast<double>(i % seq / 4 * 4));
  return starts;
}

TEST(CudaPositionEmbedding, AgreesWithTheReference) {
  for (DType x : kFloats)
    for (DType table : {DType::f32, x})
      for (int64_t width : {3, 16, 264}) {
        std::vector<Tensor> in{Tensor::random(x, {2, 9, width}, 1), Tensor::random(table, {8, width}, 2)};
        expect_cuda_matches("position_embedding", in, {{"first", int64_t{2}}}, tolerance(x));
        expect_same_in_place("position_embedding", in);
        in.push_back(Tensor::filled(DType::i32, {1}, 3));
        expect_cuda_matches("position_embedding", in, {}, tolerance(x));
        in.back() = starts(2, 9);
        expect_cuda_matches("position_embedding", in, {{"first", int64_t{2}}}, tolerance(x));
      }
}

TEST(CudaPositionEmbeddingGrad, AgreesWithTheReference) {
  for (DType dtype : kFloats)
    for (int64_t width : {3, 264})
      for (int64_t rows : {2, 5, 50})
        for (bool segments : {false, true}) {
          std::vector<Tensor> in{Tensor::random(dtype, {3, 40, width}, 1),
                                 Tensor::random(DType::f32, {rows, width}, 2)};
          if (segments) in.push_back(starts(3, 40));
          expect_cuda_matches("position_embedding_grad", in, {{"first", int64_t{2}}}, {1e-5, 1e-5});
          if (!segments) continue;
          in.back().set(50, 11);  // padding: its position is -1
          expect_cuda_matches("position_embedding_grad", in, {{"first", int64_t{2}}}, {1e-5, 1e-5});
        }
}

TEST(CudaPositionEmbeddingGrad, AccumulatesOverTrips) {
  for (int64_t trip : {0, 1}) {
    RunOptions options;
    options.trip = trip;
    expect_cuda_matches("position_embedding_grad",
                        {Tensor::random(DType::f32, {2, 5, 8}, 1), Tensor::random(DType::f32, {9, 8}, 2)},
                        {{"accumulate", std::string("carried")}, {"first", int64_t{1}}}, {1e-6, 1e-6}, options);
  }
}

}  // namespace
}  // namespace headroom::position_embedding_on_cuda
