// The text form: printing, parsing, refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "test_ops.h"

namespace headroom {
namespace {

using test::test_op;

Graph parse(std::string_view text) { return parse_graph(text, "t.graph", test_op); }

std::string parse_error(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    EXPECT_FALSE(error.remedy().empty());
    return error.what();
  }
  return "no error";
}

// Everything that the format can express, in canonical form.
constexpr std::string_view kRich = R"(graph "a \"quoted\" name\n\x01é" {
  symbol batch <= 8
  symbol "odd name" <= 512
  persistent %0: f32[512, 64] parameter "model.embed_tokens.weight"
  persistent %1: i8[64, 64]<block 32, bits 4, scale bf16>@host parameter "w"
  persistent %2: f32[512, 64]@disk/0:4 optimizer
  persistent %3: f64[] workspace
  program "train step" {
    %4: i32[batch, "odd name"] data "tokens", %5: i32[batch, "odd name"] data = next_batch() {batch=0, seq=1}
    %6: f32[batch, "odd name", 64] = embedding(%4, %0) @3.forward
    %7: f32[4, 8] gradient = zeros() {big=1e+300, cols=8, huge=9223372036854775807, "k k"="v\\", lowest=-inf, none=nan, rows=4, tenth=0.1, whole=1.0, zero=-0.0} @backward
    %8: f32[4, 8] gradient = loop(%7) {trips="micro_batches"} @12.backward (%9: f32[4, 8] gradient) {
      %10: f32[4, 8] = zeros() {cols=8, rows=4}
      %11: f32[4, 8] gradient = loop(%9) {trips="inner"} (%12: f32[4, 8] gradient) {
        yield %12
      }
      %13: f32[4, 8] gradient = accumulate(%11, %10) {accumulate="always"} @0.recompute
      yield %13
    }
    sink(%6) @update
    %14: f32[4, 8] = loop(%8) (%15: f32[4, 8]) {
      yield %15
    }
    yield %14, %6
  }
  program empty {
  }
}
)";

TEST(Text, RichGraphRoundTripsByteForByte) {
  const Graph graph = parse(kRich);
  EXPECT_EQ(print(graph), kRich);
  ASSERT_EQ(graph.programs.size(), 2u);
  EXPECT_EQ(graph.name, "a \"quoted\" name\n\x01é");
  EXPECT_EQ(graph.value(1).type.storage, (Storage{32, 4, DType::bf16}));
  EXPECT_EQ(graph.value(1).type.tier, Tier::host);
  EXPECT_EQ(graph.value(2).type.shard, (ShardSpec{0, 4}));
  EXPECT_TRUE(graph.value(3).persistent);
  EXPECT_EQ(graph.value(3).role, Role::workspace);
}

// Parts of a symbol: their sizes differ by at most one, and none grows when the symbol decreases.
TEST(Text, PartsOfASymbol) {
  const std::string text =
      "graph \"g\" {\n  symbol s <= 7\n  persistent %0: f32[s:0/3]\n  persistent %1: f32[s:2/3, 4]\n}\n";
  const Graph graph = parse(text);
  EXPECT_EQ(print(graph), text);
  EXPECT_EQ(graph.value(1).type.shape[0], Dim::of_part(0, 2, 3));
  EXPECT_EQ(concrete(graph.value(0).type, graph.bounds()).dims, (std::vector<int64_t>{3}));
  EXPECT_EQ(concrete(graph.value(1).type, {5}).dims, (std::vector<int64_t>{1, 4}));
  for (int64_t parts = 1; parts < 9; ++parts)
    for (int64_t length = 0; length < 40; ++length) {
      int64_t end = 0;
      for (int64_t part = 0; part < parts; ++part) {
        EXPECT_EQ(part_begin(length, part, parts), end);
        end += part_length(length, part, parts);
        EXPECT_LE(part_length(length, part, parts), part_length(length + 1, part, parts));
      }
      EXPECT_EQ(end, length);
    }
}

TEST(Text, AttributesKeepKindAndBits) {
  const Graph graph = parse(kRich);
  const Attrs& attrs = graph.node(2).attrs;
  EXPECT_EQ(attrs.integer("huge"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(attrs.real("tenth"), 0.1);
  EXPECT_TRUE(std::signbit(attrs.real("zero")));
  EXPECT_TRUE(std::isnan(attrs.real("none")));
  EXPECT_EQ(attrs.real("lowest"), -std::numeric_limits<double>::infinity());
  EXPECT_THROW(attrs.integer("whole"), InternalError);  // 1.0 stays a real
  EXPECT_EQ(attrs.text("k k"), "v\\");
}

TEST(Text, ExtremeRealsRoundTrip) {
  for (double value : {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(), 1.0 / 3, -1e22,
                       123456789.0, 1e16, 1e-5}) {
    Graph graph;
    Builder build(graph, add_program(graph, "p"), test_op);
    build.call("zeros", {}, {{"x", value}});
    const Graph again = parse(print(graph));
    EXPECT_EQ(again.node(0).attrs.real("x"), value);
    EXPECT_EQ(again.node(0).attrs, graph.node(0).attrs);
  }
}

TEST(Text, RenumbersDenselyWhateverTheIds) {
  const std::string_view text = R"(graph "g" { // comment
    program p { %700: f32[4, 8] = zeros() %2147483647: f32[4, 8] = relu(%700) sink(%2147483647) }
    persistent %9: f32[] "late" })";
  const std::string printed = print(parse(text));
  EXPECT_EQ(printed, R"(graph "g" {
  persistent %0: f32[] "late"
  program p {
    %1: f32[4, 8] = zeros()
    %2: f32[4, 8] = relu(%1)
    sink(%2)
  }
}
)");
  EXPECT_EQ(print(parse(printed)), printed);
}

TEST(Text, BuiltGraphParsesToTheSameGraph) {
  Graph graph;
  graph.name = "built";
  const SymbolId batch = graph.add_symbol("batch", 8);
  const SymbolId seq = graph.add_symbol("seq", 16);
  Builder build(graph, add_program(graph, "train"), test_op);
  const ValueId table = build.persistent("table", {DType::f32, {Dim::of(32), Dim::of(8)}}, Role::parameter);
  const ValueId acc = build.call("zeros", {}, {}, Role::gradient);
  build.loop("micro", {acc}, [&](Builder& inner, const std::vector<ValueId>& carried) {
    inner.set_block(2);
    inner.set_stage(Stage::backward);
    const auto tokens = inner.append("next_batch", {}, {{"batch", batch}, {"seq", seq}}, Role::data);
    inner.call("embedding", {tokens[0], table});
    return std::vector<ValueId>{inner.call("accumulate", {carried[0], inner.call("zeros", {})})};
  });
  EXPECT_TRUE(verify(graph).empty());
  const std::string printed = print(graph);
  const Graph again = parse(printed);
  EXPECT_EQ(print(again), printed);
  EXPECT_TRUE(verify(again).empty());
  ASSERT_EQ(again.nodes.size(), graph.nodes.size());
  ASSERT_EQ(again.values.size(), graph.values.size());
}

TEST(Text, PrintNodeIsSafeForBrokenGraphs) {
  Graph graph;
  Node node;
  node.inputs = {-5, 77};
  node.outputs = {3};
  node.body = 9;
  graph.nodes.push_back(node);
  EXPECT_EQ(print_node(graph, 0), "%3 = ?(%-5, %77) {...}");
  EXPECT_EQ(print_node(graph, 1), "node 1");
  EXPECT_EQ(print_type(graph, {DType::i8, {Dim::of_symbol(4)}}), "i8[?4]");
}

// The first fenced block of docs/ir_format.md, with the ops of the tests.
TEST(Text, ExampleOfTheDocumentationIsCanonical) {
  std::ifstream file(HEADROOM_SOURCE_DIR "/docs/ir_format.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t begin = text.find("```\n") + 4;
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  const auto any_op = [](std::string_view name) -> const Op& {
    return test_op(name == "embedding_grad" ? "accumulate" : name);
  };
  std::string printed = print(parse_graph(example, "ir_format.md", any_op));
  printed.replace(printed.find("accumulate("), 10, "embedding_grad");
  EXPECT_EQ(printed, example);
}

struct Bad {
  const char* text;
  const char* message;
};

TEST(Text, ErrorsNamePlaceFoundAndExpected) {
  const Bad cases[] = {
      {"", "t.graph:1:1: found the end of the text, expected 'graph'"},
      {"graph g", "t.graph:1:7: found 'g', expected the name of the graph in quotes"},
      {"graph \"g\" {\n  foo", "t.graph:2:3: found 'foo', expected 'symbol', 'persistent', 'program' or '}'"},
      {"graph \"g\" {} x", "t.graph:1:14: found 'x', expected nothing after the graph"},
      {"graph \"g", "t.graph:1:7: found a string without its closing quote, expected it on the same line"},
      {"graph \"\\q\"", "t.graph:1:8: found the escape '\\q', expected \\\", \\\\, \\n, \\t or \\xHH"},
      {"graph \"g\" { symbol s <= 0 }", "t.graph:1:25: found '0', expected a bound from 1 to 281474976710656"},
      {"graph \"g\" { symbol s <= 4 symbol s <= 4 }",
       "t.graph:1:34: found a symbol that is declared already, expected a new name"},
      {"graph \"g\" { persistent %0: f31[] }", "t.graph:1:28: found 'f31', expected a dtype such as f32"},
      {"graph \"g\" { persistent %0: f32[s] }", "t.graph:1:32: found an unknown symbol, expected one declared above"},
      {"graph \"g\" { symbol s <= 4 persistent %0: f32[s:1/1] }",
       "t.graph:1:50: found '1', expected a number of parts from 2 to 1048576"},
      {"graph \"g\" { symbol s <= 4 persistent %0: f32[s:2/2] }",
       "t.graph:1:42: found a type that cannot be: there is no part 2 of 2, expected a legal one"},
      {"graph \"g\" { persistent %0: f32[-1] }",
       "t.graph:1:32: found '-1', expected a dimension from 0 to 281474976710656"},
      {"graph \"g\" { persistent %0: f32[281474976710656, 2] }",
       "t.graph:1:28: found a type that cannot be: the type has more than 281474976710656 elements, expected a legal "
       "one"},
      {"graph \"g\" { persistent %0: f32[4]/1:2 }",
       "t.graph:1:28: found a type that cannot be: shard axis 1 is outside rank 1, expected a legal one"},
      {"graph \"g\" { persistent %0: f32[] persistent %0: f32[] }",
       "t.graph:1:45: found '%0', expected a value id that is not defined above"},
      {"graph \"g\" { persistent %0: f32[] weight }",
       "t.graph:1:34: found 'weight', expected 'symbol', 'persistent', 'program' or '}'"},
      {"graph \"g\" { program p { sink(%1) } }", "t.graph:1:30: found '%1', expected a value that is defined above"},
      {"graph \"g\" { program p { frob() } }",
       "t.graph:1:25: found an unknown op, expected the name of a registered one"},
      {"graph \"g\" { program p { zeros() {a=1, a=2} } }",
       "t.graph:1:39: found an attribute that is given already, expected a new name"},
      {"graph \"g\" { program p { zeros() {a=99999999999999999999} } }",
       "t.graph:1:36: found '99999999999999999999', expected an integer of 64 bits"},
      {"graph \"g\" { program p { zeros() {a=1e999} } }",
       "t.graph:1:36: found '1e999', expected a real number within the range of f64"},
      {"graph \"g\" { program p { zeros() {a=-} } }", "t.graph:1:36: found '-', expected a number after it"},
      {"graph \"g\" { program p { zeros() {a=b} } }",
       "t.graph:1:36: found 'b', expected the value of an attribute: a number or a text in quotes"},
      {"graph \"g\" { program p { zeros() @sideways } }",
       "t.graph:1:34: found 'sideways', expected a block, or a stage such as 'forward'"},
      {"graph \"g\" { program p { %99999999999: f32[] = zeros() } }",
       "t.graph:1:25: found '%99999999999', expected a value id such as %12, at most %2147483647"},
      {"graph \"g\" { program p { } program p { } }",
       "t.graph:1:35: found a program that is declared already, expected a new name"},
      {"graph \"g\" { program p { \x01\xff",
       "t.graph:1:25: found '\\x01', expected a node: its outputs, or the name of an op"},
  };
  for (const Bad& bad : cases) EXPECT_EQ(parse_error(bad.text), bad.message) << bad.text;
}

std::string repeated(std::string_view piece, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += piece;
  return out;
}

TEST(Text, HostileSizesAreRefused) {
  const auto loops = [](size_t depth) {
    return "graph \"g\" { program p {" + repeated(" loop() () {", depth) + repeated("}", depth) + "} }";
  };
  EXPECT_EQ(parse_error(loops(32)), "no error");
  EXPECT_NE(parse_error(loops(33)).find("at most 32 nested loops"), std::string::npos);
  EXPECT_NE(parse_error(loops(100000)).find("at most 32 nested loops"), std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" { persistent %0: f32[1" + repeated(", 1", 16) + "] }").find("at most 16"),
            std::string::npos);
  std::string symbols = "graph \"g\" {";
  for (int i = 0; i < 65; ++i) symbols += fmt::format(" symbol s{} <= 1", i);
  EXPECT_NE(parse_error(symbols).find("at most 64 symbols"), std::string::npos);
  // An overflow hidden behind a zero dimension.
  EXPECT_NE(parse_error("graph \"g\" { persistent %0: f32[0, 281474976710656, 281474976710656] }").find("elements"),
            std::string::npos);
}

TEST(Text, EveryPrefixAndEveryFlippedByteIsHandled) {
  const std::string text(kRich);
  for (size_t length = 0; length < text.size() - 2; ++length)
    EXPECT_NE(parse_error(std::string_view(text).substr(0, length)), "no error") << length;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x15);
    parse_error(changed);  // an error or a graph, never anything else
  }
}

}  // namespace
}  // namespace headroom
