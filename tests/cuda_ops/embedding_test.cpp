#include "cuda_shim/cuda_harness.h"

namespace headroom::embedding_on_cuda {
namespace {

using namespace op_test;

// Ids below `rows`, and some outside; `most` of a hundred tokens have row 3.
Tensor ids(int64_t tokens, int64_t rows, int most) {
  Tensor ids(DType::i32, {1, tokens});
  uint64_t state = static_cast<uint64_t>(tokens + rows);
  for (int64_t i = 0; i < tokens; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto drawn = static_cast<int64_t>(state >> 33);
    ids.set(i, static_cast<double>(drawn % 100 < most ? 3 : drawn / 100 % (rows + 2) - 1));
  }
  return ids;
}

TEST(CudaEmbedding, AgreesWithTheReference) {
  for (DType table : kFloats)
    for (const char* y : names_with(table))
      for (int64_t width : {1, 8, 37, 264})
        expect_cuda_matches("embedding", {ids(19, 11, 20), Tensor::random(table, {11, width}, 1)},
                            {{"dtype", std::string(y)}}, {0, 0});
}

TEST(CudaEmbeddingGrad, AgreesWithTheReference) {
  for (DType dy : kFloats)
    for (const auto& [tokens, width, most] :
         std::vector<std::array<int, 3>>{{1, 8, 0}, {40, 37, 30}, {129, 8, 100}, {300, 264, 35}, {257, 16, 0}}) {
      SCOPED_TRACE(tokens);
      expect_cuda_matches(
          "embedding_grad",
          {ids(tokens, 9, most), Tensor::random(dy, {1, tokens, width}, 1), Tensor::random(DType::f32, {9, width}, 2)},
          {}, {2e-5, 1e-5});
    }
}

// Rows with few tokens, with many, and one without tokens.
TEST(CudaEmbeddingGrad, LeavesOutThePaddingRow) {
  for (int64_t padding : {0, 3, 8})
    for (int most : {0, 50})
      expect_cuda_matches(
          "embedding_grad",
          {ids(140, 9, most), Tensor::random(DType::f32, {1, 140, 37}, 1), Tensor::random(DType::f32, {9, 37}, 2)},
          {{"padding", padding}}, {2e-5, 1e-5});
}

// 32 tokens of a row, and one fewer and one more, at every position of the order.
TEST(CudaEmbeddingGrad, AddsRowsOfEveryLength) {
  for (int run : {31, 32, 33, 64}) {
    Tensor all(DType::i32, {1, 4 * run});
    for (int i = 0; i < 4 * run; ++i) all.set(i, (i * 7 % (4 * run)) / run);
    expect_cuda_matches("embedding_grad",
                        {all, Tensor::filled(DType::f32, {1, 4 * run, 8}, 1), Tensor::filled(DType::f32, {4, 8}, 0.5)},
                        {}, {0, 0});
  }
}

TEST(CudaEmbeddingGrad, AccumulatesOverTrips) {
  for (int64_t trip : {0, 1}) {
    RunOptions options;
    options.trip = trip;
    expect_cuda_matches(
        "embedding_grad",
        {ids(50, 9, 0), Tensor::random(DType::bf16, {1, 50, 24}, 1), Tensor::random(DType::f32, {9, 24}, 2)},
        {{"accumulate", std::string("carried")}}, {2e-5, 1e-5}, options);
  }
}

}  // namespace
}  // namespace headroom::embedding_on_cuda
