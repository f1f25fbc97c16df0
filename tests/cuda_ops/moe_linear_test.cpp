#include <set>

#include "../ops_moe/routing.h"
#include "cuda_shim/cuda_harness.h"
#include "ops/cuda/capabilities.h"
#include "ops/moe_linear/cuda_expert.cuh"

namespace headroom::moe_linear_on_cuda {
namespace {

using namespace op_test;

struct Layer {
  Routing routing;
  int64_t ins, outs;
};

std::vector<Layer> layers() {
  return {{spread_routing(5, 2, 4), 24, 40},
          {spread_routing(1, 3, 40), 33, 17},
          {spread_routing(61, 2, 3), 72, 44},
          {skewed_routing(40, 2, 6), 64, 96},
          {skewed_routing(3, 1, 2), 5, 3}};
}

// Expert e has counts[e] rows.
Routing counted_routing(const std::vector<int64_t>& counts) {
  std::vector<std::vector<int64_t>> expert_of;
  for (size_t e = 0; e < counts.size(); ++e)
    expert_of.insert(expert_of.end(), static_cast<size_t>(counts[e]), {static_cast<int64_t>(e)});
  return routing_of(expert_of, static_cast<int64_t>(counts.size()));
}

// For tensor cores: experts without rows, with one, with part of a tile, with more tiles than are taken together;
// enough rows for the tall tiles; depths that end within a part, more parts than are held, ragged tiles.
std::vector<Layer> layers_of_packs() {
  return {{counted_routing({0, 1, 17, 0, 64, 130, 0}), 136, 72},
          {counted_routing({530, 2, 0}), 24, 40},
          {counted_routing({1, 520}), 40, 136}};
}

Tensor rows_of(DType dtype, const Routing& routing, int64_t width, uint64_t seed) {
  return Tensor::random(dtype, {1, routing.tokens, routing.chosen, width}, seed);
}

// Calls check(op, inputs, attrs, tolerance, options) for the products of rows of a layer.
template <typename Check>
void each_product(const Layer& layer, DType dtype, DType result, const Check& check) {
  const Routing& routing = layer.routing;
  SCOPED_TRACE(fmt::format("{} tokens {}->{}, {} to {}", routing.tokens, layer.ins, layer.outs, dtype_name(dtype),
                           dtype_name(result)));
  const Attrs attrs{{"dtype", std::string(dtype_name(result))}};
  const Tensor w = Tensor::random(dtype, {routing.experts, layer.outs, layer.ins}, 2);
  const Tensor x = rows_of(dtype, routing, layer.ins, 1), dy = rows_of(dtype, routing, layer.outs, 3);
  const Tolerance near{result == DType::f32 ? 2e-5 : 2e-3, result == DType::f32 ? 1e-5 : 1e-2};
  check("expert_linear", {x, w, routing.offsets}, attrs, near, RunOptions{});
  check("expert_linear_dx", {dy, w, routing.offsets}, attrs, near, RunOptions{});
  Attrs with_addend = attrs;
  with_addend.set("addend", int64_t{1});
  RunOptions options;
  options.use_may = result == DType::f32;
  check("expert_linear", {x, w, routing.offsets, rows_of(result, routing, layer.outs, 5)}, with_addend, near, options);
  check("expert_linear_dx", {dy, w, routing.offsets, rows_of(result, routing, layer.ins, 4)}, with_addend, near,
        options);
}

// The same for the gradients of a layer's weights.
template <typename Check>
void each_weight_gradient(const Layer& layer, DType dtype, const Check& check) {
  const Routing& routing = layer.routing;
  SCOPED_TRACE(fmt::format("{} tokens {}->{}, {}", routing.tokens, layer.ins, layer.outs, dtype_name(dtype)));
  const std::vector<Tensor> inputs{rows_of(dtype, routing, layer.ins, 1), rows_of(dtype, routing, layer.outs, 3),
                                   routing.offsets,
                                   Tensor::random(DType::f32, {routing.experts, layer.outs, layer.ins}, 4)};
  for (int64_t trip : {0, 1})
    for (const char* accumulate : {"carried", "always"}) {
      RunOptions options;
      options.trip = trip;
      check("expert_linear_dw", inputs, Attrs{{"accumulate", std::string(accumulate)}}, Tolerance{5e-5, 1e-5}, options);
    }
}

void expect_matches(const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs, Tolerance tolerance,
                    const RunOptions& options) {
  expect_cuda_matches(op, inputs, attrs, tolerance, options);
}

// With the kernel that a device of compute capability 8.0 uses.
void expect_tensor_cores_match(const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs,
                               Tolerance tolerance, const RunOptions& options) {
  SCOPED_TRACE(op);
  const RunResult found = run_cuda_op(op, inputs, attrs, options);
  EXPECT_EQ(found.implementation, "mma");
  RunOptions plain = options;
  plain.only = "reference";
  expect_close(found.outputs[0], run_op(op, inputs, attrs, plain).outputs[0], tolerance.absolute, tolerance.relative);
}

TEST(CudaMoeLinear, EachRowMeetsItsExpert) {
  for (const Layer& layer : layers()) {
    each_product(layer, DType::f32, DType::f32, expect_matches);
    for (DType narrow : {DType::bf16, DType::f16})
      for (DType result : {DType::f32, narrow}) each_product(layer, narrow, result, expect_matches);
  }
}

// f32 weights with bf16 rows: the same bits as with the weights rounded beforehand.
TEST(CudaMoeLinear, WideWeightsAreRounded) {
  std::vector<Layer> all = layers();
  all.push_back(layers_of_packs().front());
  for (const Layer& layer : all)
    each_product(
        layer, DType::bf16, DType::bf16,
        [](const char* op, std::vector<Tensor> inputs, const Attrs& attrs, Tolerance, const RunOptions& options) {
          const RunResult narrow = run_cuda_op(op, inputs, attrs, options);
          inputs[1] = Tensor::random(DType::f32, inputs[1].type().dims, 2);
          const RunResult wide = run_cuda_op(op, inputs, attrs, options);
          EXPECT_EQ(wide.implementation, narrow.implementation);
          expect_same_bytes(wide.outputs[0], narrow.outputs[0]);
        });
}

TEST(CudaMoeLinear, WeightGradientsAddUpOrOverwrite) {
  for (const Layer& layer : layers())
    for (DType dtype : kFloats) each_weight_gradient(layer, dtype, expect_matches);
}

TEST(CudaMoeLinear, TensorCoresAgreeWithTheReference) {
  for (const Layer& layer : layers_of_packs()) {
    each_product(layer, DType::bf16, DType::f32, expect_tensor_cores_match);
    each_product(layer, DType::bf16, DType::bf16, expect_tensor_cores_match);
    each_weight_gradient(layer, DType::bf16, expect_tensor_cores_match);
  }
}

// The number of result columns need not be a multiple of a pack, nor even.
TEST(CudaMoeLinear, TensorCoresTakeAnyNumberOfOutputs) {
  for (int64_t outs : {1, 45, 131}) {
    const Routing routing = counted_routing({3, 0, 20});
    for (DType result : {DType::f32, DType::bf16})
      expect_tensor_cores_match("expert_linear",
                                {rows_of(DType::bf16, routing, 40, 1),
                                 Tensor::random(DType::bf16, {routing.experts, outs, 40}, 2), routing.offsets},
                                {{"dtype", std::string(dtype_name(result))}}, {2e-3, 1e-2}, {});
  }
}

// A row has the same bits in any tile and among any other rows.
TEST(CudaMoeLinear, RowsDoNotDependOnTheirTile) {
  const Routing many = counted_routing({520}), few = counted_routing({17, 3});
  const Tensor x = rows_of(DType::bf16, many, 72, 1), w = Tensor::random(DType::bf16, {1, 40, 72}, 2);
  const Attrs attrs{{"dtype", std::string("f32")}};
  Tensor begin(DType::bf16, {1, 20, 1, 72}), both(DType::bf16, {2, 40, 72});
  for (int64_t i = 0; i < begin.count(); ++i) begin.set(i, x.at(i));
  for (int64_t i = 0; i < both.count(); ++i) both.set(i, w.at(i % w.count()));
  const Tensor all = run_cuda_op("expert_linear", {x, w, many.offsets}, attrs).outputs[0];
  const Tensor some = run_cuda_op("expert_linear", {begin, both, few.offsets}, attrs).outputs[0];
  for (int64_t i = 0; i < some.count(); ++i) EXPECT_EQ(some.at(i), all.at(i)) << i;
}

TEST(CudaMoeLinear, TensorCoresRefuseWhatTheyCannotRead) {
  TestServices services;
  const Routing routing = counted_routing({9, 3});
  const auto refusal = [&](const char* op, DType dtype, int64_t ins, int64_t outs, int capability,
                           int64_t shared_bytes) {
    CudaContext context = test_context(services);
    context.facts.capabilities = of_compute_capability(capability);
    context.shared_bytes = shared_bytes;
    const bool forward = op == std::string("expert_linear");
    const KernelSpec spec = spec_of(op,
                                    {rows_of(dtype, routing, forward ? ins : outs, 1),
                                     Tensor(dtype, {routing.experts, outs, ins}), routing.offsets},
                                    Attrs{}, context.facts);
    for (const CudaCandidate& candidate : cuda_kernels().candidates(op))
      if (candidate.implementation == "mma") return candidate.make(spec, context).refusal;
    return std::string("no such kernel");
  };
  const int64_t enough = 48 << 10;
  for (const char* op : {"expert_linear", "expert_linear_dx"}) {
    EXPECT_EQ(refusal(op, DType::bf16, 16, 24, 80, enough), "");
    EXPECT_EQ(refusal(op, DType::f32, 16, 24, 80, enough), "operands are not bf16");
    EXPECT_EQ(refusal(op, DType::bf16, 20, 24, 80, enough), "rows are not multiples of 16 bytes");
    EXPECT_EQ(refusal(op, DType::bf16, 16, 24, 75, enough), "needs compute capability 8.0, not 7.5");
    EXPECT_EQ(refusal(op, DType::bf16, 16, 24, 80, enough - 1), "needs 49152 bytes of shared memory, not 49151");
  }
  EXPECT_EQ(refusal("expert_linear", DType::bf16, 16, 20, 80, enough), "");
  EXPECT_EQ(refusal("expert_linear_dx", DType::bf16, 16, 20, 80, enough), "rows are not multiples of 16 bytes");
}

TEST(CudaMoeLinear, EveryTileHasItsTurn) {
  for (int down : {1, 7, 8, 9, 16, 19})
    for (int across : {1, 2, 5}) {
      std::set<std::pair<int, int>> seen;
      for (int i = 0; i < down * across; ++i) {
        const cuda::TileOrder at = cuda::tile_order(i, down, across);
        EXPECT_TRUE(at.down >= 0 && at.down < down && at.across >= 0 && at.across < across);
        seen.insert({at.down, at.across});
      }
      EXPECT_EQ(seen.size(), static_cast<size_t>(down * across));
    }
}

// A token's rows have the same bits alone as among enough others for tall tiles.
TEST(CudaMoeLinear, RowsDoNotDependOnTheirNumber) {
  constexpr int64_t kIns = 40, kOuts = 136;
  const Routing many = counted_routing({530, 2, 0}), one = counted_routing({1, 0, 0});
  for (DType dtype : kFloats) {
    const Tensor x = rows_of(dtype, many, kIns, 1), w = Tensor::random(dtype, {3, kOuts, kIns}, 2);
    Tensor first = rows_of(dtype, one, kIns, 1);
    for (int64_t i = 0; i < kIns; ++i) first.set(i, x.at(i));
    const Attrs attrs{{"dtype", "f32"}, {"batch_invariant", int64_t{1}}};
    const Tensor all = run_cuda_op("expert_linear", {x, w, many.offsets}, attrs).outputs[0];
    const RunResult alone = run_cuda_op("expert_linear", {first, w, one.offsets}, attrs);
    EXPECT_NE(alone.implementation, "rows");
    for (int64_t i = 0; i < kOuts; ++i) ASSERT_EQ(alone.outputs[0].at(i), all.at(i)) << dtype_name(dtype) << ' ' << i;
  }
}

}  // namespace
}  // namespace headroom::moe_linear_on_cuda
