// packing passes the batch's segments to every op that reads positions; length-buckets gives lengths names.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/registry.h"
#include "passes/length_buckets.h"
#include "passes/packing.h"

namespace headroom {
namespace {

constexpr const char* kForward = R"(graph "tiny" {
  symbol batch <= 2
  symbol seq <= 16
  persistent %0: f32[32, 8] parameter "embed"
  persistent %1: f32[16, 8] parameter "positions"
  persistent %2: f32[16, 4] constant "rope_table"
  persistent %3: f32[16] data "hyper"
  program forward() {
    %10: i32[batch, seq] data, %11: i32[batch, seq] data = next_batch() {batch_symbol=0, seq_symbol=1}
    %12: f32[batch, seq, 8] = embedding(%10, %0)
    %13: f32[batch, seq, 8] = position_embedding(%12, %1)
    %14: f32[batch, seq, 8] = rotary(%13, %2) {heads=2, inverse=0, offset=0}
    %15: f32[batch, seq, 8], %16: f32[batch, 2, seq] = attention(%14, %14, %13) {heads=2, kv_heads=2, window=0}
    %17: f32[batch, seq, 8], %18: f32[batch, 2, seq] = attention(%14, %14, %15, %3) {dropout=0.1, heads=2, kv_heads=2, tensor=7, window=0}
    yield %17
  }
}
)";

TEST(Packing, TheSegmentsReachAllThatReadsPositions) {
  Graph graph = parse_graph(kForward, "input", find_op);
  verify_or_throw(graph, "input");
  pack_rows(graph, graph.find_program("forward"));
  verify_or_throw(graph, "packing");
  const Region& region = graph.region(graph.find_program("forward"));
  const Node& batch = graph.node(region.nodes.at(0));
  ASSERT_EQ(batch.outputs.size(), 3u);
  const ValueId starts = batch.outputs[2];
  EXPECT_EQ(graph.value(starts).type, graph.value(batch.outputs[0]).type);
  EXPECT_EQ(graph.value(starts).role, Role::data);
  for (size_t i = 2; i < 6; ++i) EXPECT_EQ(graph.node(region.nodes.at(i)).inputs.back(), starts) << i;
  EXPECT_EQ(graph.node(region.nodes.at(1)).inputs.size(), 2u);                   // the embedding reads no position
  EXPECT_THROW(pack_rows(graph, graph.find_program("forward")), InternalError);  // once
}

TEST(LengthBuckets, AreFractionsOfTheLongest) {
  EXPECT_EQ(bucket_lengths(512), (std::vector<int64_t>{64, 128, 256, 384}));
  EXPECT_EQ(bucket_lengths(64), (std::vector<int64_t>{16, 32, 48}));
  EXPECT_EQ(bucket_lengths(100), (std::vector<int64_t>{16, 32, 64, 80}));
  EXPECT_EQ(bucket_lengths(16), std::vector<int64_t>{});
  EXPECT_EQ(bucket_lengths(2), std::vector<int64_t>{});
}

}  // namespace
}  // namespace headroom
