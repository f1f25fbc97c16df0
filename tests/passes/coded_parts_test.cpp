// Settings of quantize-weights, and what they cannot name.
#include "passes/coded_parts.h"

#include <gtest/gtest.h>

#include "../formats/expect_error.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "passes/quantize_weights.h"

namespace headroom {
namespace {

TEST(CodedParts, EachPartHasAForm) {
  EXPECT_EQ(coded_parts("nf4-dq"), (CodedParts{"nf4-dq", "", ""}));
  EXPECT_EQ(coded_parts("int8+head"), (CodedParts{"int8", "", "int8"}));
  EXPECT_EQ(coded_parts("int4+embedding+head:int8-g32"), (CodedParts{"int4", "int4", "int8-g32"}));
  EXPECT_EQ(coded_parts("int4+head+embedding"), (CodedParts{"int4", "int4", "int4"}));
}

TEST(CodedParts, OtherPartsAreNone) {
  for (const char* setting : {"int8+", "int8+norm", "int8+head+head", "int8+head:", "int8+head:int4+head", "+head"})
    EXPECT_EQ(coded_parts(setting), std::nullopt) << setting;
}

TEST(CodedParts, TheSettingIsReadAgain) {
  for (const char* setting : {"int8", "int8+head", "int4+embedding+head:int8-g32", "int4+embedding:int8"})
    EXPECT_EQ(coded_setting(coded_parts(setting).value()), setting);
}

// The matrix that tokens look up is the head, too.
Graph tied() {
  return parse_graph(
      "graph \"tiny\" {\n"
      "  persistent %0: f32[32, 8] parameter \"embed\"\n"
      "  persistent %1: i32[1, 4] data \"ids\"\n"
      "  program forward {\n"
      "    %2: f32[1, 4, 8] = embedding(%1, %0)\n"
      "    %3: f32[1, 4, 32] = linear(%2, %0) {bias=0, layout=\"out_in\", residual=0}\n"
      "    yield %3\n"
      "  }\n"
      "}\n",
      "the test", find_op);
}

TEST(CodedParts, OneMatrixHasOneForm) {
  Graph graph = tied();
  const RegionId forward = graph.find_program("forward");
  expect_error(ErrorKind::usage, "cannot be both int8 and int4-g8", [&] {
    quantize_embedding_and_head(graph, forward, {"nf4", "int8", "int4-g8"});
  });
  EXPECT_TRUE(graph.value(0).type.storage.dense());
  EXPECT_EQ(quantize_embedding_and_head(graph, forward, {"nf4", "int8", "int8"}), (std::vector<ValueId>{0}));
  EXPECT_EQ(graph.value(0).type.storage, (Storage{8, 8, DType::f32, CodeTable::integer}));
}

TEST(CodedParts, AGraphWithoutAHeadIsRefused) {
  Graph graph = tied();
  const RegionId forward = graph.find_program("forward");
  graph.region(forward).nodes.pop_back();
  expect_error(ErrorKind::usage, "no head", [&] { quantize_embedding_and_head(graph, forward, {"int8", "", "int8"}); });
}

}  // namespace
}  // namespace headroom
