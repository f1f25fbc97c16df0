#include "cuda_shim/cuda_harness.h"

namespace headroom::moe_balance_on_cuda {
namespace {

using namespace op_test;

struct Layer {
  int64_t batch, seq, experts, chosen;
};

// Fewer and more experts than a warp has lanes, and than its lanes own at a time; more parts than warps in a block.
std::vector<Layer> layers() { return {{1, 1, 4, 2}, {3, 7, 5, 2}, {2, 70, 8, 8}, {2, 5, 300, 9}, {9, 500, 3, 1}}; }

// Full rows, partly padded rows and a row of padding only.
Tensor lengths(const Layer& layer) {
  Tensor made(DType::i32, {layer.batch});
  for (int64_t row = 0; row < layer.batch; ++row)
    made.set(row, static_cast<double>(row == 0 ? layer.seq : row % 3 == 2 ? 0 : layer.seq / row));
  return made;
}

Tensor logits(const Layer& layer, DType dtype) {
  return Tensor::random(dtype, {layer.batch, layer.seq, layer.experts}, 5, 2.0);
}

Tensor sums(const Layer& layer, uint64_t seed) {
  Tensor made = Tensor::random(DType::f32, {2 * layer.experts + 1}, seed);
  made.set(2 * layer.experts, 40);
  return made;
}

TEST(CudaMoeBalance, BeginsWithNothing) {
  for (int64_t experts : {1, 5, 300}) expect_cuda_matches("moe_balance_begin", {}, {{"experts", experts}}, {0, 0});
}

TEST(CudaMoeBalance, SumsALayer) {
  for (const Layer& layer : layers())
    for (DType dtype : kFloats) {
      SCOPED_TRACE(fmt::format("{}x{} tokens to {} of {}", layer.batch, layer.seq, layer.chosen, layer.experts));
      const Tensor input = logits(layer, dtype);
      RunOptions plain, in_place;
      plain.only = "reference";
      in_place.use_may = dtype == DType::bf16;
      const RunResult routed =
          run_op("moe_route", {input}, {{"top_k", layer.chosen}, {"normalised", int64_t{0}}}, plain);
      expect_cuda_matches("moe_balance", {input, routed.outputs[1], routed.outputs[2], lengths(layer), sums(layer, 6)},
                          {}, {1e-5, 1e-5}, in_place);
    }
}

TEST(CudaMoeBalance, GivesTheGradientOfTheLogits) {
  for (const Layer& layer : layers())
    for (DType dtype : kFloats) {
      RunOptions in_place;
      in_place.use_may = dtype == DType::f32;
      const double near = dtype == DType::f32 ? 1e-6 : 2e-3;
      expect_cuda_matches("moe_balance_grad", {logits(layer, dtype), lengths(layer), sums(layer, 7)}, {},
                          {near, dtype == DType::f32 ? 1e-5 : 1e-2}, in_place);
    }
}

// Negative labels (only -100 occurs) and the first of each row are not targets.
Tensor labels(int64_t rows, int64_t seq) {
  Tensor made = Tensor::filled(DType::i32, {rows, seq}, 3);
  for (int64_t at = 0; at < rows * seq; at += 3) made.set(at, -100);
  return made;
}

TEST(CudaMoeBalance, WeighsTheLossByTheTargets) {
  for (const Layer& layer : layers())
    for (const auto& [accumulate, trip] : {std::pair{"carried", 0}, std::pair{"carried", 1}, std::pair{"always", 0}})
      for (int64_t length : {2, 3}) {
        RunOptions options;
        options.trip = trip;
        const Tensor losses = Tensor::random(DType::f64, {length}, 8), scale = Tensor::filled(DType::f32, {1}, 0.5);
        expect_cuda_matches("moe_balance_loss", {sums(layer, 9), labels(3, 131), losses, scale},
                            {{"coefficient", 0.25}, {"accumulate", std::string(accumulate)}}, {1e-9, 1e-9}, options);
      }
}

TEST(CudaMoeBalance, GivesTheGradientOfTheSums) {
  for (const Layer& layer : layers()) {
    const Tensor scale = Tensor::filled(DType::f32, {1}, 0.125);
    expect_cuda_matches("moe_balance_loss_grad", {sums(layer, 10), labels(3, 131), scale}, {{"coefficient", 3.0}},
                        {1e-9, 1e-6});
  }
}

TEST(CudaMoeBalance, WithoutTokensThereIsNoLoss) {
  const Tensor none = Tensor::filled(DType::f32, {9}, 0), scale = Tensor::filled(DType::f32, {1}, 1);
  const Attrs attrs{{"coefficient", 1.0}};
  expect_cuda_matches("moe_balance_loss", {none, labels(2, 4), Tensor::filled(DType::f64, {2}, 7), scale}, attrs,
                      {0, 0});
  expect_cuda_matches("moe_balance_loss_grad", {none, labels(2, 4), scale}, attrs, {0, 0});
}

}  // namespace
}  // namespace headroom::moe_balance_on_cuda
