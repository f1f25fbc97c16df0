// Dead code, replacing, inserting, renumbering, and the index that they use.
#include "ir/rewrite.h"

#include <gtest/gtest.h>

#include "ir/graph_index.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "test_ops.h"

namespace headroom {
namespace {

using test::test_op;

Graph program(const std::string& nodes) {
  return parse_graph(R"(graph "g" {
    persistent %0: f32[4, 8] parameter "w"
    persistent %1: f32[4, 8] gradient "acc"
    program p { )" + nodes +
                         " } }",
                     "t.graph", test_op);
}

// The lines between the program's braces, without indentation.
std::string body_of(const Graph& graph) {
  const std::string text = print(graph);
  const size_t begin = text.find("program p {\n") + 12;
  std::string out;
  bool blank = true;
  for (char c : text.substr(begin, text.rfind("  }\n}") - begin)) {
    if (blank && c == ' ') continue;
    blank = c == '\n';
    out.push_back(c);
  }
  return out;
}

std::string without_dead(const std::string& nodes, int expected_drops) {
  Graph graph = program(nodes);
  EXPECT_TRUE(verify(graph).empty()) << nodes;
  EXPECT_EQ(remove_dead_nodes(graph), expected_drops) << nodes;
  EXPECT_TRUE(verify(graph).empty()) << nodes;
  compact(graph);
  EXPECT_TRUE(verify(graph).empty()) << nodes;
  EXPECT_EQ(remove_dead_nodes(graph), 0) << nodes;
  return body_of(graph);
}

TEST(DeadNodes, ChainsWithoutReadersGo) {
  EXPECT_EQ(without_dead("%2: f32[4, 8] = relu(%0) %3: f32[4, 8] = relu(%2) %4: f32[4, 8] = relu(%2)", 3), "");
  EXPECT_EQ(without_dead("%2: f32[4, 8] = relu(%0) %3: f32[4, 8] = relu(%2) sink(%2)", 1),
            "%2: f32[4, 8] = relu(%0)\nsink(%2)\n");
}

TEST(DeadNodes, EffectsResultsAndTheirInputsStay) {
  const std::string all =
      "%2: f32[4, 8] = relu(%0)\n%3: f32[4, 8], %4: f32[4, 8] = split(%2)\n%5: f32[4, 8] = update(%1, %4)\n"
      "%6: f32[4, 8] = relu(%2)\nyield %6\n";
  EXPECT_EQ(without_dead(all, 0), all);
}

TEST(DeadNodes, UpdatesOfPersistentStorageStay) {
  // accumulate itself has no effect, but writing into the persistent accumulator is one, through the whole chain.
  const std::string chain = "%2: f32[4, 8] = accumulate(%1, %0)\n%3: f32[4, 8] = accumulate(%2, %0)\n";
  EXPECT_EQ(without_dead(chain, 0), chain);
  // The same into new storage that is not read is dead.
  EXPECT_EQ(without_dead("%2: f32[4, 8] = zeros() %3: f32[4, 8] = accumulate(%2, %0)", 2), "");
}

TEST(DeadNodes, LoopThatUpdatesPersistentStorageStays) {
  const std::string loop =
      "%2: f32[4, 8] = loop(%1) {trips=\"n\"} (%3: f32[4, 8]) {\n%4: f32[4, 8] = accumulate(%3, %0)\nyield %4\n}\n";
  EXPECT_EQ(without_dead(loop, 0), loop);
  // Passing the value through changes nothing.
  EXPECT_EQ(without_dead("%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { yield %3 }", 1), "");
}

TEST(DeadNodes, LoopsDropDeadCarriedValuesAndBodyNodes) {
  EXPECT_EQ(without_dead("%2: f32[4, 8] = zeros() %3: f32[4, 8] = zeros() {rows=4} "
                         "%4: f32[4, 8], %5: f32[4, 8] = loop(%2, %3) (%6: f32[4, 8], %7: f32[4, 8]) {"
                         "  %8: f32[4, 8] = relu(%6) %9: f32[4, 8] = add(%7, %8) %10: f32[4, 8] = relu(%8)"
                         "  yield %8, %9 } sink(%4)",
                         3),
            "%2: f32[4, 8] = zeros()\n%3: f32[4, 8] = loop(%2) (%4: f32[4, 8]) {\n%5: f32[4, 8] = relu(%4)\n"
            "yield %5\n}\nsink(%3)\n");
}

TEST(DeadNodes, CarriedValueThatFeedsALiveOneStays) {
  // The second carried value is not read outside the loop, but the first depends on it from trip to trip.
  const std::string loop =
      "%2: f32[4, 8] = zeros()\n%3: f32[4, 8] = zeros() {rows=4}\n"
      "%4: f32[4, 8], %5: f32[4, 8] = loop(%2, %3) (%6: f32[4, 8], %7: f32[4, 8]) {\n%8: f32[4, 8] = add(%6, %7)\n"
      "%9: f32[4, 8] = relu(%7)\nyield %8, %9\n}\nsink(%4)\n";
  EXPECT_EQ(without_dead(loop, 0), loop);
}

TEST(DeadNodes, EffectInALoopKeepsTheLoopOnly) {
  EXPECT_EQ(without_dead("%2: f32[4, 8] = zeros() %3: f32[4, 8] = loop(%2) (%4: f32[4, 8]) {"
                         "  sink(%0) loop() () { sink(%1) } %5: f32[4, 8] = relu(%4) yield %5 }",
                         2),
            "loop() () {\nsink(%0)\nloop() () {\nsink(%1)\n}\n}\n");
  EXPECT_EQ(without_dead("loop() () { loop() () { %2: f32[4, 8] = zeros() } }", 3), "");
}

TEST(Replace, OneValueEverywhere) {
  Graph graph = program(
      "%2: f32[4, 8] = zeros() %3: f32[4, 8] = relu(%0) loop() () { %4: f32[4, 8] = add(%2, %2) sink(%2) } yield %2");
  replace_uses(graph, 2, 3);
  EXPECT_EQ(body_of(graph),
            "%2: f32[4, 8] = zeros()\n%3: f32[4, 8] = relu(%0)\nloop() () {\n%4: f32[4, 8] = add(%3, %3)\nsink(%3)\n}\n"
            "yield %3\n");
}

TEST(Replace, ManyValuesFollowChains) {
  Graph graph = program("%2: f32[4, 8] = relu(%0) %3: f32[4, 8] = relu(%2) %4: f32[4, 8] = add(%3, %2) yield %4");
  const std::vector<ValueId> replacement{kNone, kNone, 0, 2};
  replace_uses(graph, replacement);
  EXPECT_EQ(body_of(graph),
            "%2: f32[4, 8] = relu(%0)\n%3: f32[4, 8] = relu(%0)\n%4: f32[4, 8] = add(%0, %0)\nyield %4\n");
  const std::vector<ValueId> cycle{1, 0};
  EXPECT_THROW(replace_uses(graph, cycle), InternalError);
}

TEST(Insert, NodesGoWhereTheyAreTold) {
  Graph graph = program("%2: f32[4, 8] = relu(%0) sink(%2)");
  const RegionId region = graph.programs[0].region;
  const NodeId scaled = make_node(graph, test_op("scale"), {2, kNone}, {{"by", 2.0}}, 5, Stage::recompute);
  const NodeId copy = clone_node(graph, 0, Stage::recompute);
  const NodeId last = make_node(graph, test_op("sink"), {graph.node(scaled).outputs[0]}, {}, kNone, Stage::forward);
  EXPECT_TRUE(verify(graph).empty());  // not listed yet
  insert_all(graph, region, {{2, last}, {1, scaled}, {1, copy}});
  EXPECT_EQ(body_of(graph),
            "%2: f32[4, 8] = relu(%0)\n%3: f32[4, 8] = scale(%2) {by=2.0} @5.recompute\n"
            "%4: f32[4, 8] = relu(%0) @recompute\nsink(%2)\nsink(%3)\n");
  EXPECT_TRUE(verify(graph).empty());
  const NodeId first = make_node(graph, test_op("zeros"), {}, {}, kNone, Stage::forward);
  insert_before(graph, region, 0, std::vector<NodeId>{first});
  EXPECT_EQ(graph.region(region).nodes.front(), first);
  EXPECT_THROW(insert_before(graph, region, 7, {}), InternalError);
  EXPECT_THROW(insert_all(graph, region, {{7, first}}), InternalError);
  EXPECT_THROW(insert_all(graph, region, {{-1, first}}), InternalError);
}

TEST(Insert, RolesFollowMustAliases) {
  Graph graph = program("");
  const NodeId node = make_node(graph, test_op("accumulate"), {1, 0}, {}, kNone, Stage::backward);
  EXPECT_EQ(graph.value(graph.node(node).outputs[0]).role, Role::gradient);
}

TEST(Compact, DropsTheUnreachableAndKeepsOrder) {
  Graph graph = program(
      "%2: f32[4, 8] = zeros() {rows=4} %3: f32[4, 8] = loop(%2) (%4: f32[4, 8]) { %5: f32[4, 8] = relu(%4) yield %5 }"
      "%6: f32[4, 8] = relu(%0) sink(%6)");
  remove_dead_nodes(graph);
  const Renumbering ids = compact(graph);
  EXPECT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.regions.size(), 1u);
  ASSERT_EQ(graph.values.size(), 3u);
  EXPECT_EQ(graph.value(1).name, "acc");  // persistent and unread
  EXPECT_EQ(ids.values.back(), 2);
  EXPECT_EQ(ids.values[2], kNone);
  EXPECT_EQ(ids.nodes, (std::vector<NodeId>{kNone, kNone, kNone, 0, 1}));
  EXPECT_EQ(ids.regions, (std::vector<RegionId>{0, kNone}));
  EXPECT_TRUE(verify(graph).empty());
  compact(graph, UnusedPersistent::drop);
  ASSERT_EQ(graph.values.size(), 2u);
  EXPECT_EQ(graph.value(0).name, "w");
}

TEST(Index, KnowsDefinitionsUsesAndNesting) {
  const Graph graph = program(
      "%2: f32[4, 8] = zeros() %3: f32[4, 8] = loop(%2) (%4: f32[4, 8]) { %5: f32[4, 8] = add(%4, %0) yield %5 }"
      "sink(%3) yield %2");
  const GraphIndex index(graph);
  const RegionId outer = graph.programs[0].region;
  const NodeId loop = graph.region(outer).nodes[1];
  const RegionId inner = graph.node(loop).body;
  const ValueId param = graph.region(inner).params[0];
  const ValueId sum = graph.region(inner).results[0];
  EXPECT_EQ(index.region(inner).owner, loop);
  EXPECT_EQ(index.region(outer).owner, kNone);
  EXPECT_TRUE(index.encloses(outer, inner));
  EXPECT_FALSE(index.encloses(inner, outer));
  EXPECT_EQ(index.definition(param).region, inner);
  EXPECT_EQ(index.definition(param).node, kNone);
  EXPECT_EQ(index.definition(0).region, kNone);
  EXPECT_GT(index.definition(3).time, index.region(inner).end);  // a loop's output exists after its body
  ASSERT_EQ(index.uses(2).size(), 2u);                           // the loop, then the program's result
  EXPECT_EQ(index.uses(2)[0].node, loop);
  EXPECT_EQ(index.uses(2)[1].node, kNone);
  EXPECT_EQ(index.uses(2)[1].position, 3);
  ASSERT_EQ(index.uses(sum).size(), 1u);
  EXPECT_EQ(index.uses(sum)[0].region, inner);
  EXPECT_EQ(index.order().size(), 4u);
  EXPECT_FALSE(index.used(1));
}

TEST(Index, StorageRootsFollowMustAliasesThroughLoops) {
  const Graph graph = program(
      "%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { %4: f32[4, 8] = accumulate(%3, %0) yield %4 }"
      "%5: f32[4, 8] = relu(%2) %6: f32[4, 8] = update(%0, %2)");
  const std::vector<ValueId> roots = storage_roots(GraphIndex(graph));
  EXPECT_EQ(roots, (std::vector<ValueId>{0, 1, 1, 1, 1, 5, 0}));
}

}  // namespace
}  // namespace headroom
