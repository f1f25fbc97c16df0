#include "passes/freeze.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headroom {
namespace {

TEST(Freeze, PatternsAreRunsOfTheNamesParts) {
  const char* name = "model.layers.12.self_attn.q_proj.weight";
  for (const char* pattern : {"layers.12", "layers", "q_proj", "self_attn.q_proj", "layers.12-12", "layers.3-40",
                              "layers.1*", "*_proj", "self_*.*", "model.layers.12.self_attn.q_proj.weight", "*", "12"})
    EXPECT_TRUE(pattern_means(pattern, name)) << pattern;
  for (const char* pattern : {"layer", "layers.1", "layers.13-40", "layers.40-3", "k_proj", "proj", "q_proj.self_attn",
                              "", "layers.", ".layers", "weight.weight", "layers.12-", "layers.-12", "1*3"})
    EXPECT_FALSE(pattern_means(pattern, name)) << pattern;
}

TEST(Freeze, ManyStarsTakeNoLongTime) {
  const std::string part(2000, 'a'), pattern = [] {
    std::string text;
    for (int i = 0; i < 500; ++i) text += "a*";
    return text + "b";
  }();
  EXPECT_FALSE(pattern_means(pattern, part));
}

Graph two_weights() {
  Graph graph;
  for (const char* name : {"layers.0.up.weight", "layers.1.up.weight"}) {
    Value value;
    value.name = name;
    value.role = Role::parameter;
    value.persistent = true;
    graph.values.push_back(std::move(value));
  }
  return graph;
}

TEST(Freeze, NamesWhatIsWrong) {
  const Graph graph = two_weights();
  const std::string good = "layers.0", none = "layer.0", all = "up";
  EXPECT_EQ(frozen_weights(graph, {}), std::set<ValueId>());
  EXPECT_EQ(frozen_weights(graph, {&good, 1}), std::set<ValueId>({0}));
  try {
    frozen_weights(graph, {&none, 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("layer.0"), std::string::npos);
    EXPECT_NE(error.remedy().find("'layers'"), std::string::npos) << error.remedy();
  }
  EXPECT_THROW(frozen_weights(graph, {&all, 1}), Error);
}

}  // namespace
}  // namespace headroom
