// The passes of a graph without a gradient run as those of training do: the graph of a plan is checked after each.
#include "planner/finished_generation.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace headroom {
namespace {

Graph tiny_decoder(const std::string& result) {
  return parse_graph(
      "graph \"tiny\" {\n"
      "  persistent %0: f32[4, 8] parameter \"x\"\n"
      "  persistent %1: f32[8, 8] parameter \"w\"\n"
      "  program load {\n"
      "  }\n"
      "  program decode {\n"
      "    %2: " +
          result +
          " = linear(%0, %1) {bias=0, layout=\"out_in\", residual=0}\n"
          "    yield %2\n"
          "  }\n"
          "}\n",
      "the test", find_op);
}

Graph finished(const std::string& result, bool verify) {
  const std::vector<std::string> programs{"decode"};
  return finished_generation(PlanRequest{}, tiny_decoder(result), programs, ProductRows::invariant, {}, verify);
}

TEST(FinishedGeneration, ASoundGraphIsChecked) {
  const Graph graph = finished("f32[4, 8]", true);
  EXPECT_EQ(graph.region(graph.find_program("load")).nodes.size(), 1u);  // the host's buffer
}

TEST(FinishedGeneration, AFaultIsNamedAfterThePass) {
  try {
    finished("f32[4, 9]", true);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("after batch-invariant: rule output-types-match-shape-rule"))
        << error.what();
  }
}

TEST(FinishedGeneration, AGraphThatIsOnlyComparedIsNotChecked) { EXPECT_NO_THROW(finished("f32[4, 9]", false)); }

}  // namespace
}  // namespace headroom
