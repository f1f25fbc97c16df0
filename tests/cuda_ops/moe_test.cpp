#include "../ops_moe/routing.h"
#include "cuda_shim/cuda_harness.h"

namespace headroom::moe_on_cuda {
namespace {

using namespace op_test;

Tolerance tolerance(DType dtype) { return dtype == DType::f32 ? Tolerance{1e-6, 1e-5} : Tolerance{2e-3, 1e-2}; }

std::vector<Routing> routings() {
  return {spread_routing(5, 2, 4), spread_routing(1, 3, 8), spread_routing(61, 2, 3), skewed_routing(40, 2, 6),
          skewed_routing(3, 1, 2)};
}

Tensor weights_of(const Routing& routing, uint64_t seed) {
  return Tensor::random(DType::f32, {1, routing.tokens, routing.chosen}, seed);
}

// Equal logits among the chosen ones, NaN, more pairs than one block sorts, more slots than a warp has lanes.
TEST(CudaMoe, RoutesLikeTheReference) {
  struct Case {
    int64_t tokens, experts, chosen;
  };
  for (DType dtype : kFloats)
    for (const Case& c : {Case{1, 4, 2}, Case{7, 8, 8}, Case{150, 5, 2}, Case{2, 70, 34}, Case{1, 2100, 3}})
      for (int64_t normalised : {0, 1}) {
        SCOPED_TRACE(fmt::format("{} tokens to {} of {}, {}", c.tokens, c.chosen, c.experts, dtype_name(dtype)));
        Tensor logits = Tensor::random(dtype, {1, c.tokens, c.experts}, 7, 2.0);
        for (int64_t i = 0; i < logits.count(); i += 3) logits.set(i, 1.0);
        const Attrs attrs{{"top_k", c.chosen}, {"normalised", normalised}};
        expect_cuda_matches("moe_route", {logits}, attrs, {1e-6, 1e-5});
        RunOptions plain;
        plain.only = "reference";
        const RunResult routed = run_op("moe_route", {logits}, attrs, plain);
        RunOptions options;
        options.use_may = normalised == 1;
        expect_cuda_matches(
            "moe_route_grad",
            {logits, Tensor::random(DType::f32, {1, c.tokens, c.chosen}, 8), routed.outputs[1], routed.outputs[2]},
            {{"normalised", normalised}}, tolerance(dtype), options);
      }
}

TEST(CudaMoe, RoutesNotANumberLast) {
  Tensor logits = Tensor::random(DType::f32, {1, 2, 6}, 3);
  logits.set(1, NAN);
  logits.set(4, NAN);
  RunOptions plain;
  plain.only = "reference";
  const Attrs attrs{{"top_k", int64_t{5}}, {"normalised", int64_t{0}}};
  expect_same_bytes(run_cuda_op("moe_route", {logits}, attrs).outputs[1],
                    run_op("moe_route", {logits}, attrs, plain).outputs[1]);
}

TEST(CudaMoe, DispatchesAndCombines) {
  for (const Routing& routing : routings())
    for (DType dtype : kFloats)
      for (int64_t width : {int64_t{3}, routing.tokens == 5 ? int64_t{1040} : int64_t{40}}) {
        const int64_t tokens = routing.tokens, chosen = routing.chosen;
        expect_cuda_matches("moe_dispatch", {Tensor::random(dtype, {1, tokens, width}, 1), routing.rows}, {}, {0, 0});
        const Tensor z = Tensor::random(dtype, {1, tokens, chosen, width}, 2), weights = weights_of(routing, 3);
        expect_cuda_matches("moe_combine", {z, routing.rows}, {}, tolerance(dtype));
        expect_cuda_matches("moe_combine", {z, routing.rows, weights}, {{"weighted", int64_t{1}}}, tolerance(dtype));
        for (DType y : {DType::f32, dtype}) {
          RunOptions in_place;
          in_place.use_may = y == DType::f32;
          const Tensor residual = Tensor::random(y, {1, tokens, width}, 4);
          expect_cuda_matches("moe_combine", {z, routing.rows, weights, residual},
                              {{"weighted", int64_t{1}}, {"residual", int64_t{1}}}, tolerance(y), in_place);
          expect_cuda_matches("moe_combine_grad", {Tensor::random(y, {1, tokens, width}, 5), z, routing.rows, weights},
                              {}, {dtype == DType::f32 ? 1e-5 : 2e-3, 1e-2}, in_place);
        }
      }
}

}  // namespace
}  // namespace headroom::moe_on_cuda
