// The experts' products against sums in double precision, with every implementation and instruction set; the booked
// scratch covers every routing.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "ops/moe_linear/products.h"
#include "routing.h"

namespace headroom::op_test {
namespace {

constexpr const char* kImplementations[] = {"rows", "amx", "simd", "reference"};

struct Case {
  Routing routing;
  int64_t ins, outs;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  list.push_back({spread_routing(5, 2, 4), 24, 40});
  list.push_back({spread_routing(1, 3, 8), 33, 17});
  list.push_back({spread_routing(61, 2, 3), 70, 45});
  list.push_back({skewed_routing(40, 2, 6), 64, 96});
  list.push_back({skewed_routing(3, 1, 2), 5, 3});
  return list;
}

double tolerance(DType dtype, int64_t depth) {
  return (dtype == DType::bf16 ? 1.0 / 100 : 4e-7) * std::sqrt(static_cast<double>(depth)) + 1e-6;
}

Tensor rows_of(DType dtype, const Case& c, int64_t width, uint64_t seed) {
  return Tensor::random(dtype, {1, c.routing.tokens, c.routing.chosen, width}, seed);
}

// Runs `body` for every case, dtype and implementation that accepts it.
void for_each_kernel(const char* op, const std::function<void(const Case&, DType, const RunOptions&)>& body) {
  for_each_target([&](const std::string&) {
    for (DType dtype : {DType::f32, DType::bf16})
      for (const Case& c : cases())
        for (const char* implementation : kImplementations) {
          SCOPED_TRACE(fmt::format("{} {} {} tokens {}->{}", implementation, dtype_name(dtype), c.routing.tokens, c.ins,
                                   c.outs));
          RunOptions options;
          options.only = implementation;
          bool known = false;
          for (const KernelCandidate& candidate : cpu_kernels().candidates(op))
            known = known || candidate.implementation == implementation;
          if (known) body(c, dtype, options);
        }
  });
}

TEST(ExpertLinear, EachRowMeetsItsExpert) {
  int ran = 0;
  for_each_kernel("expert_linear", [&](const Case& c, DType dtype, RunOptions options) {
    const Tensor x = rows_of(dtype, c, c.ins, 1);
    const Tensor w = Tensor::random(dtype, {c.routing.experts, c.outs, c.ins}, 2);
    for (const auto& [rounded, adds] :
         {std::pair{DType::f32, false}, {DType::f32, true}, {DType::bf16, false}, {DType::bf16, true}}) {
      if (dtype == DType::f32 && rounded == DType::bf16) continue;
      const Attrs attrs{{"dtype", std::string(dtype_name(rounded))}, {"addend", int64_t{adds}}};
      const Tensor addend = rows_of(rounded, c, c.outs, 4);
      std::vector<Tensor> inputs{x, w, c.routing.offsets};
      if (adds) inputs.push_back(addend);
      options.use_may = c.ins % 2 == 0;
      if (!accepts("expert_linear", inputs, attrs, options.only)) continue;
      const RunResult result = run_op("expert_linear", inputs, attrs, options);
      Vector expected;
      for (size_t row = 0; row < c.routing.expert_of_row.size(); ++row)
        for (int64_t out = 0; out < c.outs; ++out) {
          double sum = adds ? addend.at(static_cast<int64_t>(row) * c.outs + out) : 0;
          for (int64_t in = 0; in < c.ins; ++in)
            sum += x.at(static_cast<int64_t>(row) * c.ins + in) *
                   w.at((c.routing.expert_of_row[row] * c.outs + out) * c.ins + in);
          expected.push_back(sum);
        }
      expect_near(result.outputs[0], expected, tolerance(rounded, c.ins), 0);
      ++ran;
    }
  });
  EXPECT_GT(ran, 10);
}

// Batch-invariant: a token has the same bits alone and among others, however many rows its experts get; as serving
// wants it. With tiles, blocks and rows as they are stored.
TEST(ExpertLinear, ATokenHasTheSameBitsAmongOthers) {
  const Attrs attrs{{"batch_invariant", int64_t{1}}};
  for_each_target([&](const std::string&) {
    for (const Routing& routing : {spread_routing(61, 2, 5), skewed_routing(37, 2, 6), spread_routing(700, 1, 2)}) {
      const int64_t ins = routing.tokens > 100 ? 1536 : 96, outs = 70, count = routing.tokens * routing.chosen;
      const Tensor w = Tensor::random(DType::bf16, {routing.experts, outs, ins}, 2);
      const Tensor x = Tensor::random(DType::bf16, {1, routing.tokens, routing.chosen, ins}, 1);
      RunOptions options;
      options.only = "rows";
      if (!accepts("expert_linear", {x, w, routing.offsets}, attrs, options.only)) continue;
      const RunResult together = run_op("expert_linear", {x, w, routing.offsets}, attrs, options);
      for (int64_t row = 0; row<count; row += routing.tokens> 100 ? 97 : 5) {
        Tensor one(DType::bf16, {1, 1, 1, ins}), offsets(DType::i32, {routing.experts + 1});
        for (int64_t in = 0; in < ins; ++in) one.set(in, x.at(row * ins + in));
        for (int64_t e = 0; e <= routing.experts; ++e)
          offsets.set(e, e > routing.expert_of_row[static_cast<size_t>(row)] ? 1 : 0);
        const RunResult alone = run_op("expert_linear", {one, w, offsets}, attrs, options);
        for (int64_t out = 0; out < outs; ++out)
          ASSERT_EQ(alone.outputs[0].at(out), together.outputs[0].at(row * outs + out)) << "row " << row << ", " << out;
      }
    }
  });
}

TEST(ExpertLinear, InputGradient) {
  for_each_kernel("expert_linear_dx", [&](const Case& c, DType dtype, RunOptions options) {
    const Tensor dy = rows_of(dtype, c, c.outs, 3), addend = rows_of(dtype, c, c.ins, 4);
    const Tensor w = Tensor::random(dtype, {c.routing.experts, c.outs, c.ins}, 2);
    for (bool adds : {false, true})
      for (bool use_may : {false, true}) {
        std::vector<Tensor> inputs{dy, w, c.routing.offsets};
        if (adds) inputs.push_back(addend);
        const Attrs attrs{{"addend", int64_t{adds}}};
        if (!accepts("expert_linear_dx", inputs, attrs, options.only)) continue;
        options.use_may = use_may;
        const RunResult result = run_op("expert_linear_dx", inputs, attrs, options);
        Vector expected;
        for (size_t row = 0; row < c.routing.expert_of_row.size(); ++row)
          for (int64_t in = 0; in < c.ins; ++in) {
            const int64_t at = static_cast<int64_t>(row);
            double sum = adds ? addend.at(at * c.ins + in) : 0;
            for (int64_t out = 0; out < c.outs; ++out)
              sum += dy.at(at * c.outs + out) * w.at((c.routing.expert_of_row[row] * c.outs + out) * c.ins + in);
            expected.push_back(sum);
          }
        expect_near(result.outputs[0], expected, tolerance(dtype, c.outs), 0);
      }
  });
}

TEST(ExpertLinear, WeightGradient) {
  for_each_kernel("expert_linear_dw", [&](const Case& c, DType dtype, RunOptions options) {
    const Tensor x = rows_of(dtype, c, c.ins, 1), dy = rows_of(dtype, c, c.outs, 3);
    const Tensor before = Tensor::random(DType::f32, {c.routing.experts, c.outs, c.ins}, 5);
    const std::vector<Tensor> inputs{x, dy, c.routing.offsets, before};
    for (const auto& [accumulate, trip, overwrites] :
         {std::tuple<const char*, int64_t, bool>{"carried", 0, true}, {"carried", 1, false}, {"always", 0, false}}) {
      const Attrs attrs{{"accumulate", accumulate}};
      if (!accepts("expert_linear_dw", inputs, attrs, options.only)) continue;
      options.trip = trip;
      const RunResult result = run_op("expert_linear_dw", inputs, attrs, options);
      Vector expected = overwrites ? Vector(static_cast<size_t>(before.count())) : values(before);
      for (size_t row = 0; row < c.routing.expert_of_row.size(); ++row)
        for (int64_t out = 0; out < c.outs; ++out)
          for (int64_t in = 0; in < c.ins; ++in)
            expected[static_cast<size_t>((c.routing.expert_of_row[row] * c.outs + out) * c.ins + in)] +=
                dy.at(static_cast<int64_t>(row) * c.outs + out) * x.at(static_cast<int64_t>(row) * c.ins + in);
      expect_near(result.outputs[0], expected, tolerance(DType::f32, c.routing.tokens), 1e-6);
    }
  });
}

// f32 weights with bf16 rows: the same bits as with the weights rounded beforehand.
TEST(ExpertLinear, WideWeightsAreRounded) {
  for (const char* op : {"expert_linear", "expert_linear_dx"})
    for_each_kernel(op, [&](const Case& c, DType dtype, const RunOptions& options) {
      const bool forward = std::string_view(op) == "expert_linear";
      const Tensor w = Tensor::random(DType::f32, {c.routing.experts, c.outs, c.ins}, 2);
      const std::vector<Tensor> wide{rows_of(DType::bf16, c, forward ? c.ins : c.outs, 1), w, c.routing.offsets},
          narrow{wide[0], rounded(w), c.routing.offsets};
      if (dtype == DType::f32 || !accepts(op, wide, {}, options.only)) return;
      expect_same_bytes(run_op(op, wide, {}, options).outputs[0], run_op(op, narrow, {}, options).outputs[0]);
    });
}

TEST(ExpertLinear, MultipliesAsAsked) {
  const Case c{spread_routing(61, 2, 3), 70, 45};
  const Tensor x = rows_of(DType::f32, c, c.ins, 1), w = Tensor::random(DType::f32, {3, c.outs, c.ins}, 2);
  RunOptions plain;
  plain.only = "reference";
  const RunResult exact = run_op("expert_linear", {x, w, c.routing.offsets}, {}, plain);
  for (const auto& [multiply, error] : {std::pair<const char*, double>{"bf16x3", 2e-4}, {"bf16", 0.1}})
    expect_close(run_op("expert_linear", {x, w, c.routing.offsets}, {{"multiply", multiply}}).outputs[0],
                 exact.outputs[0], error, 0);
}

TEST(ExpertLinear, RunsRepeatTheirBits) {
  const Case c{spread_routing(61, 2, 3), 70, 45};
  for (int team_size : {1, 3})
    for (DType dtype : {DType::f32, DType::bf16}) {
      const Team team(team_size);
      const Tensor x = rows_of(dtype, c, c.ins, 1), w = Tensor::random(dtype, {3, c.outs, c.ins}, 2);
      const RunResult first = run_op("expert_linear", {x, w, c.routing.offsets});
      expect_same_bytes(run_op("expert_linear", {x, w, c.routing.offsets}).outputs[0], first.outputs[0]);
    }
}

// Whatever rows an expert gets, its product needs at most what is booked for all of them.
TEST(ExpertLinear, BookedScratchCoversEveryRouting) {
  for (const TileTraits& tile : {kAmxTile, kAmxRoundedTile, kAmxSplitTile, kSimdTile})
    for (int threads : {1, 2, 7, 16})
      for (const auto& [cols, depth] : {std::pair<int64_t, int64_t>{31, 45}, {768, 2048}, {2048, 768}, {5000, 3000}})
        for (int64_t total : {1, 100, 2200}) {
          MatmulSpec spec;
          spec.operand = DType::bf16;
          spec.result = DType::bf16;
          spec.size = {total, cols, depth};
          MatmulSpec gradient;
          gradient.a_transposed = gradient.addend = true;
          gradient.size = {cols, depth, total};
          const int64_t rows_bound = most_blocked_bytes(spec, tile, threads);
          const int64_t depth_bound = most_blocked_bytes(gradient, tile, threads);
          for (int64_t rows = 1; rows <= total; rows += 1 + rows / 16) {
            spec.size.rows = gradient.size.depth = rows;
            ASSERT_LE(cut_matmul(spec, tile, threads).total_bytes(), rows_bound) << rows << " " << cols << " " << depth;
            ASSERT_LE(cut_matmul(gradient, tile, threads).total_bytes(), depth_bound)
                << rows << " " << cols << " " << depth;
          }
        }
}

TEST(ExpertLinear, OffsetsThatCutOtherRowsStopTheRun) {
  const Case c{spread_routing(5, 2, 4), 24, 40};
  const Tensor x = rows_of(DType::f32, c, c.ins, 1), w = Tensor::random(DType::f32, {4, c.outs, c.ins}, 2);
  for (const Vector& offsets : {Vector{0, 1, 2, 3, 11}, Vector{1, 2, 3, 4, 10}, Vector{0, 12, 2, 3, 10}})
    for (const char* implementation : {"rows", "simd", "reference"}) {
      RunOptions options;
      options.only = implementation;
      EXPECT_THROW(run_op("expert_linear", {x, w, Tensor(DType::i32, {5}, offsets)}, {}, options), InternalError)
          << implementation;
    }
}

TEST(ExpertLinear, RulesAreChecked) {
  const Case c{spread_routing(5, 2, 4), 24, 40};
  const Tensor x = rows_of(DType::f32, c, c.ins, 1);
  const Tensor w = Tensor::random(DType::f32, {4, c.outs, c.ins}, 2);
  EXPECT_THROW(run_op("expert_linear", {x, Tensor(DType::f32, {3, c.outs, c.ins}), c.routing.offsets}), InternalError);
  EXPECT_THROW(run_op("expert_linear", {x, Tensor(DType::bf16, {4, c.outs, c.ins}), c.routing.offsets}), InternalError);
  EXPECT_THROW(run_op("expert_linear", {x, Tensor(DType::f32, {4, c.outs, c.ins + 1}), c.routing.offsets}),
               InternalError);
  EXPECT_THROW(run_op("expert_linear", {x, w, c.routing.offsets}, {{"dtype", "bf16"}}), InternalError);
  EXPECT_THROW(run_op("expert_linear_dw", {x, x, c.routing.offsets, w}), InternalError);
}

}  // namespace
}  // namespace headroom::op_test
