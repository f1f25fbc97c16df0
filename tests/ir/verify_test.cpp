// For every rule of the verifier there is a graph that breaks only that rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <set>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "test_ops.h"

namespace headroom {
namespace {

using test::test_op;

// A complete, valid graph around the nodes of one program `p`.
Graph program(const std::string& nodes) {
  return parse_graph(R"(graph "g" {
    symbol batch <= 8
    persistent %0: f32[4, 8] parameter "w"
    persistent %1: f32[4, 8] gradient "acc"
    program p { )" + nodes +
                         " } }",
                     "t.graph", test_op);
}

std::string rules_of(const Graph& graph) {
  std::string out;
  for (const Violation& violation : verify(graph)) {
    EXPECT_FALSE(violation.message.empty());
    if (out.find(violation.rule) == std::string::npos) out += (out.empty() ? "" : " ") + std::string(violation.rule);
  }
  return out;
}

TEST(Verify, SoundGraphsPass) {
  const char* programs[] = {
      "",
      "%2: f32[4, 8] = relu(%0) %3: f32[4, 8] = add(%2, %0) sink(%3)",
      // In place; afterwards only the new value is read.
      "%2: f32[4, 8] = accumulate(%1, %0) %3: f32[4, 8] = update(%0, %2)",
      // A loop carries an accumulator; the body reads outer values.
      "%2: f32[4, 8] = zeros() %3: f32[4, 8] = loop(%2) (%4: f32[4, 8]) "
      "{ %5: f32[4, 8] = relu(%0) %6: f32[4, 8] = accumulate(%4, %5) yield %6 } sink(%3)",
      // Carried through unchanged; a new value as result.
      "%2: f32[4, 8] = loop(%1) (%4: f32[4, 8]) { yield %4 } "
      "%3: f32[4, 8] = loop(%2) (%5: f32[4, 8]) { %6: f32[4, 8] = relu(%5) yield %6 }",
      "%2: f32[4, 8]@host, %5: i32[] = copy_start(%0) {tier=\"host\"} %3: f32[4, 8]@host = copy_wait(%2, %5) "
      "%4: f32[4, 8] = update(%0, %1)",
      // A loop of one trip may update a weight after its last use.
      "loop() () { sink(%0) %2: f32[4, 8] = update(%0, %1) }",
      "%2: i8[4, 8] = cast(%0) {dtype=\"i8\"} %3: u8[4, 8] = cast(%2) {dtype=\"u8\", in_place=1}",
  };
  for (const char* nodes : programs) EXPECT_EQ(rules_of(program(nodes)), "") << nodes;
}

// What a pass must not leave, as text.
struct Case {
  const char* rule;
  const char* nodes;
};

const Case kTextCases[] = {
    {"loop-shape", "%2: f32[4, 8] = loop(%1)"},
    {"loop-shape", "%2: f32[4, 8] = relu(%1) (%3: f32[4, 8]) { yield %3 }"},
    {"loop-shape", "%2: f32[4, 8] = loop(%1) () { yield %1 }"},
    {"loop-shape", "%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { }"},
    {"loop-shape", "loop(%1) (%3: f32[4, 8]) { yield %3 }"},
    {"defined-before-use", "%2: f32[4, 8] = relu(%2)"},
    {"defined-before-use", "%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { %4: f32[4, 8] = relu(%3) yield %3 } sink(%4)"},
    {"defined-before-use", "%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { sink(%2) yield %3 }"},
    {"defined-before-use", "loop() () { %2: f32[4, 8] = zeros() } yield %2"},
    {"defined-before-use", "} program q { %2: f32[4, 8] = zeros() } program r { sink(%2)"},
    {"region-params-match-inputs", "%2: f32[8, 4] = loop(%1) (%3: f32[8, 4]) { yield %3 }"},
    {"region-params-match-inputs", "} program q (%2: f32[4]) {"},
    {"loop-results-match-params",
     "%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { %4: f32[2, 8] = zeros() {rows=2} yield %4 }"},
    {"loop-results-match-params", "%2: bf16[4, 8] = loop(%1) (%3: f32[4, 8]) { yield %3 }"},
    {"output-types-match-shape-rule", "%2: f32[4, 9] = relu(%0)"},
    {"output-types-match-shape-rule", "%2: f32[4, 8] = split(%0)"},
    {"output-types-match-shape-rule", "%2: f32[batch, 8] = zeros()"},
    {"output-types-match-shape-rule", "%2: f32[4, 8]@host = relu(%0)"},
    {"output-types-match-shape-rule", "%2: f32[4, 8] = relu(%0, %0)"},             // the rule throws
    {"output-types-match-shape-rule", "%2: f32[4, 8] = zeros() {rows=\"four\"}"},  // the attribute has another kind
    {"must-alias-in-range", "%2: i32[4, 8] = cast(%0) {dtype=\"i32\", in_place=1, alias_input=3}"},
    {"must-alias-in-range", "%2: i32[4, 8] = cast(%0) {dtype=\"i32\", in_place=1, alias_input=-1}"},
    {"must-alias-types-agree", "%2: bf16[4, 8] = cast(%0) {dtype=\"bf16\", in_place=1}"},
    {"must-alias-single-owner",
     "%2: f32[4, 8], %3: f32[4, 8] = loop(%1, %1) (%4: f32[4, 8], %5: f32[4, 8]) "
     "{ yield %4, %5 }"},
    {"must-alias-single-owner", "%2: f32[4, 8] = merge(%0, %1)"},
    {"must-alias-input-dead-after", "%2: f32[4, 8] = accumulate(%1, %0) sink(%1)"},
    {"must-alias-input-dead-after", "%2: f32[4, 8] = update(%0, %1) %3: f32[4, 8] = update(%0, %1)"},
    {"must-alias-input-dead-after", "%2: f32[4, 8] = zeros() %3: f32[4, 8] = accumulate(%2, %0) yield %2"},
    {"must-alias-input-dead-after", "%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { sink(%1) yield %3 }"},
    {"must-alias-input-dead-after", "%2: f32[4, 8] = accumulate(%1, %0) loop() () { loop() () { sink(%1) } }"},
    // In a loop, the next trip reads what this one has overwritten.
    {"must-alias-input-dead-after", "%2: f32[4, 8] = zeros() loop() () { %3: f32[4, 8] = accumulate(%2, %0) }"},
    {"must-alias-input-dead-after", "loop() () { %3: f32[4, 8] = update(%0, %1) sink(%0) }"},
    {"loop-results-keep-storage",
     "%6: f32[4, 8] = zeros() %2: f32[4, 8], %3: f32[4, 8] = loop(%1, %6) "
     "(%4: f32[4, 8], %5: f32[4, 8]) { yield %5, %4 }"},
    {"loop-results-keep-storage", "%2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { yield %0 }"},
    {"loop-results-keep-storage", "%4: f32[4, 8] = zeros() %2: f32[4, 8] = loop(%1) (%3: f32[4, 8]) { yield %4 }"},
    {"loop-results-keep-storage",
     "%6: f32[4, 8] = zeros() %2: f32[4, 8], %3: f32[4, 8] = loop(%1, %6) "
     "(%4: f32[4, 8], %5: f32[4, 8]) { %7: f32[4, 8] = zeros() yield %7, %7 }"},
    {"host-reached-by-copies",
     "%2: f32[4, 8]@host, %5: i32[] = copy_start(%0) {tier=\"host\"} %3: f32[4, 8]@host = copy_wait(%2, %5) "
     "sink(%3)"},
    {"start-has-wait", "%2: f32[4, 8], %9: i32[] = copy_start(%0)"},
    {"start-has-wait", "%2: f32[4, 8], %9: i32[] = copy_start(%0) sink(%2) sink(%9)"},
    {"start-has-wait", "%2: f32[4, 8], %9: i32[] = copy_start(%0) yield %2, %9"},
    {"start-has-wait",
     "%2: f32[4, 8], %9: i32[] = copy_start(%0) %3: f32[4, 8] = relu(%2) "
     "%4: f32[4, 8] = copy_wait(%2, %9)"},
    {"start-has-wait",
     "%2: f32[4, 8], %8: i32[] = copy_start(%0) %3: f32[4, 8], %9: i32[] = copy_start(%0) "
     "%4: f32[4, 8] = copy_wait(%2, %9) %5: f32[4, 8] = copy_wait(%3, %8)"},
    {"start-source-unchanged",
     "%2: f32[4, 8], %9: i32[] = copy_start(%0) %3: f32[4, 8] = update(%0, %1) "
     "%4: f32[4, 8] = copy_wait(%2, %9)"},
};

TEST(Verify, TextCasesBreakExactlyTheirRule) {
  for (const Case& item : kTextCases) EXPECT_EQ(rules_of(program(item.nodes)), item.rule) << item.nodes;
}

TEST(Verify, WaitsInAnotherRegionOrTwiceAreRefused) {
  // The wait is in a loop: it would wait on every trip (and overwrite a value from outside the loop).
  const std::string start = "%2: f32[4, 8], %9: i32[] = copy_start(%0) ";
  EXPECT_EQ(rules_of(program(start + "loop() () { %3: f32[4, 8] = copy_wait(%2, %9) }")),
            "must-alias-input-dead-after start-has-wait");
  EXPECT_EQ(rules_of(program(start + "%3: f32[4, 8] = copy_wait(%2, %9) %4: f32[4, 8] = copy_wait(%2, %9)")),
            "must-alias-input-dead-after start-has-wait");
}

// What the text form cannot express.
struct BrokenCase {
  const char* rule;
  std::function<void(Graph&)> damage;
};

const std::vector<BrokenCase>& broken_cases() {
  constexpr int32_t huge = std::numeric_limits<int32_t>::max();
  // Node 0 %2 = zeros, node 1 the body's %5 = relu(%4), node 2 the loop, node 3 sink(%3). Region 0 program, 1 body.
  static const std::vector<BrokenCase> cases = {
      {"ids-in-range", [](Graph& g) { g.nodes[3].inputs[0] = 99; }},
      {"ids-in-range", [](Graph& g) { g.nodes[3].inputs[0] = kNone; }},
      {"ids-in-range", [](Graph& g) { g.nodes[0].outputs[0] = huge; }},
      {"ids-in-range", [](Graph& g) { g.nodes[0].op = nullptr; }},
      {"ids-in-range", [](Graph& g) { g.nodes[2].body = 7; }},
      {"ids-in-range", [](Graph& g) { g.nodes[2].body = -2; }},
      {"ids-in-range", [](Graph& g) { g.regions[0].nodes.push_back(44); }},
      {"ids-in-range", [](Graph& g) { g.regions[1].params[0] = -7; }},
      {"ids-in-range", [](Graph& g) { g.regions[1].results[0] = 1000; }},
      {"ids-in-range", [](Graph& g) { g.programs[0].region = 5; }},
      {"nested-once", [](Graph& g) { g.regions[0].nodes.push_back(0); }},
      {"nested-once", [](Graph& g) { g.regions[1].nodes.push_back(3); }},
      {"nested-once", [](Graph& g) { g.nodes[2].body = 0; }},  // the program's own region: endless nesting
      {"nested-once", [](Graph& g) { g.regions[1].nodes.push_back(2); }},
      {"nested-once",
       [](Graph& g) {
         g.programs.push_back({"q", 0});
       }},
      {"symbol-in-range", [](Graph& g) { g.symbols[0].bound = 0; }},
      {"symbol-in-range", [](Graph& g) { g.symbols[0].bound = std::numeric_limits<int64_t>::max(); }},
      {"symbol-in-range", [](Graph& g) { g.symbols.push_back(g.symbols[0]); }},
      {"symbol-in-range", [](Graph& g) { g.values[2].type.shape[0] = Dim::of_symbol(1); }},
      {"type-well-formed", [](Graph& g) { g.values[2].type.shape[0] = Dim::of(-4); }},
      {"type-well-formed", [](Graph& g) { g.values[2].type.shape[0].parts = 0; }},
      {"type-well-formed",
       [](Graph& g) {
         g.values[2].type.shape[0] = Dim{8, -1, 0, 2};
       }},
      {"type-well-formed", [](Graph& g) { g.values[2].type.shape[0] = Dim::of(std::numeric_limits<int64_t>::max()); }},
      {"type-well-formed",
       [](Graph& g) {
         g.values[2].type.shard = ShardSpec{2, 2};
       }},
      {"type-well-formed",
       [](Graph& g) {
         g.values[2].type.shard = ShardSpec{0, 0};
       }},
      {"type-well-formed",
       [](Graph& g) {
         g.values[2].type.storage = {64, 0, DType::f32};
       }},
      {"type-well-formed",
       [](Graph& g) {
         g.values[2].type.storage = {64, 4, DType::i32};
       }},
      {"type-well-formed",
       [](Graph& g) {
         g.values[2].type.storage = {0, 4, DType::f32};
       }},
      {"type-well-formed", [](Graph& g) { g.values[2].type.shape.resize(17, Dim::of(1)); }},
      {"node-block-range", [](Graph& g) { g.nodes[1].block = -2; }},
      {"node-block-range", [](Graph& g) { g.nodes[1].block = huge; }},
      {"program-names-unique",
       [](Graph& g) {
         g.regions.emplace_back();
         g.programs.push_back({"p", 2});
       }},
      {"names-unique-among-persistent", [](Graph& g) { g.values[1].name = g.values[0].name; }},
      {"ssa-single-definition", [](Graph& g) { g.nodes[1].outputs[0] = 2; }},
      {"persistent-has-no-producer", [](Graph& g) { g.values[2].persistent = true; }},
      {"defined-before-use", [](Graph& g) { std::swap(g.regions[0].nodes[0], g.regions[0].nodes[1]); }},
      {"defined-before-use", [](Graph& g) { g.values[0].persistent = false; }},
  };
  return cases;
}

Graph sound() {
  return program(
      "%2: f32[4, 8] = zeros() %3: f32[4, 8] = loop(%2) (%4: f32[4, 8]) { %5: f32[4, 8] = add(%4, %0) yield %5 } "
      "sink(%3)");
}

TEST(Verify, BrokenGraphsBreakTheirRuleFirst) {
  ASSERT_EQ(rules_of(sound()), "");
  size_t number = 0;
  for (const BrokenCase& item : broken_cases()) {
    Graph graph = sound();
    item.damage(graph);
    const std::vector<Violation> violations = verify(graph);
    ASSERT_FALSE(violations.empty()) << item.rule << " case " << number;
    EXPECT_EQ(violations[0].rule, item.rule) << violations[0].message << " case " << number;
    ++number;
  }
}

TEST(Verify, EveryRuleHasAMustFailCase) {
  std::set<std::string_view> covered;
  for (const Case& item : kTextCases) covered.insert(item.rule);
  for (const BrokenCase& item : broken_cases()) covered.insert(item.rule);
  std::set<std::string_view> names;
  for (const RuleInfo& rule : verifier_rules()) {
    EXPECT_TRUE(covered.count(rule.name)) << rule.name;
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.description.empty());
  }
}

TEST(Verify, DocumentationListsEveryRule) {
  std::ifstream file(HEADROOM_SOURCE_DIR "/docs/ir_format.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const RuleInfo& rule : verifier_rules())
    EXPECT_NE(text.find(fmt::format("| {} | {} |\n", rule.name, rule.description)), std::string::npos) << rule.name;
}

TEST(Verify, LoopDepthIsBounded) {
  Graph graph;
  graph.regions.emplace_back();
  graph.programs.push_back({"p", 0});
  for (int i = 0; i < 100000; ++i) {
    Node node;
    node.op = &test_op("loop");
    node.body = i + 1;
    graph.nodes.push_back(node);
    graph.regions.back().nodes = {i};
    graph.regions.emplace_back();
  }
  EXPECT_EQ(rules_of(graph), "nested-once");
}

TEST(Verify, ViolationsAreBounded) {
  std::string nodes;
  for (int i = 0; i < 200; ++i) nodes += fmt::format("%{}: f32[4, 9] = relu(%0) ", i + 2);
  EXPECT_EQ(verify(program(nodes)).size(), 64u);
}

TEST(Verify, UnlistedNodesAreNotHeldToTheRules) {
  Graph graph = sound();
  graph.regions[0].nodes.pop_back();  // the sink is dropped, its input too
  graph.nodes[3].inputs[0] = 1;
  EXPECT_EQ(rules_of(graph), "");
}

TEST(Verify, ThrowNamesCulpritRuleAndNode) {
  EXPECT_NO_THROW(verify_or_throw(sound(), "build"));
  try {
    verify_or_throw(program("%2: f32[4, 9] = relu(%0) @3.recompute sink(%2) %3: f32[4, 9] = relu(%0)"), "recompute");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(),
                 "after recompute: rule output-types-match-shape-rule: output %2 is f32[4, 9], the shape rule gives "
                 "f32[4, 8], at node 0: %2: f32[4, 9] = relu(%0) @3.recompute (and 1 more violations)");
  }
}

}  // namespace
}  // namespace headroom
