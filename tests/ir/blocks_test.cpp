// Classes of equal layers, and layers found in flat graphs.
#include "ir/blocks.h"

#include <gtest/gtest.h>

#include "test_ops.h"

namespace headroom {
namespace {

using test::test_op;

Type matrix(int64_t rows, int64_t cols) { return {DType::f32, {Dim::of(rows), Dim::of(cols)}}; }

// A chain of small residual layers: norm, two products with an activation between, add.
class Chain {
 public:
  Chain() : build_(graph_, add_program(graph_, "p"), test_op) { x_ = build_.call("zeros", {}); }

  Chain& prologue() {
    x_ = build_.call("cast", {x_}, {{"dtype", "f32"}});
    x_ = build_.call("scale", {x_}, {{"by", 8.0}});
    return *this;
  }
  Chain& layer(int32_t block, int64_t hidden = 16, double scale = 1.0) {
    build_.set_block(block);
    const std::string name = "layer" + std::to_string(count_++);
    const ValueId up = build_.persistent(name + ".up", matrix(hidden, 8), Role::parameter);
    const ValueId down = build_.persistent(name + ".down", matrix(8, hidden), Role::parameter);
    const ValueId norm = build_.call("scale", {x_}, {{"by", scale}});
    const ValueId wide = build_.call("relu", {build_.call("linear", {norm, up})});
    x_ = build_.call("add", {x_, build_.call("linear", {wide, down})});
    build_.set_block(kNone);
    return *this;
  }
  // Ends with the op that a layer starts with, and another product.
  Chain& epilogue() {
    x_ = build_.call("scale", {x_}, {{"by", 1.0}});
    const ValueId head = build_.persistent("head", matrix(32, 8), Role::parameter);
    x_ = build_.call("linear", {x_, head});
    build_.append("sink", {x_});
    return *this;
  }
  Graph& graph() { return graph_; }
  Builder& build() { return build_; }
  ValueId& x() { return x_; }
  RegionId region() const { return graph_.programs[0].region; }

 private:
  Graph graph_;
  Builder build_;
  ValueId x_ = kNone;
  int count_ = 0;
};

std::vector<int32_t> expected_blocks(size_t before, size_t period, size_t count, size_t after) {
  std::vector<int32_t> out(before, kNone);
  for (size_t block = 0; block < count; ++block) out.insert(out.end(), period, static_cast<int32_t>(block));
  out.insert(out.end(), after, kNone);
  return out;
}

TEST(BlockClasses, EqualLayersAreOneClassWhateverTheirNames) {
  Chain chain;
  chain.prologue().layer(0).layer(1).layer(2).epilogue();
  const std::vector<BlockClass> classes = block_classes(chain.graph(), chain.region());
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].blocks, (std::vector<int32_t>{0, 1, 2}));
}

TEST(BlockClasses, ShapeAttributeStageAndWiringSplitClasses) {
  Chain chain;
  chain.layer(0).layer(1, 32).layer(2, 16, 0.5).layer(3);
  chain.build().set_stage(Stage::backward);
  chain.layer(4);
  chain.build().set_stage(Stage::forward);
  // Block 5: the same ops, but the second product reads the first one's output instead of the activation's.
  chain.build().set_block(5);
  const ValueId up = chain.build().persistent("u", matrix(16, 8), Role::parameter);
  const ValueId down = chain.build().persistent("d", matrix(8, 16), Role::parameter);
  const ValueId norm = chain.build().call("scale", {chain.x()}, {{"by", 1.0}});
  const ValueId wide = chain.build().call("linear", {norm, up});
  chain.build().call("relu", {wide});
  chain.x() = chain.build().call("add", {chain.x(), chain.build().call("linear", {wide, down})});
  chain.layer(6);
  const std::vector<BlockClass> classes = block_classes(chain.graph(), chain.region());
  ASSERT_EQ(classes.size(), 5u);
  EXPECT_EQ(classes[0].blocks, (std::vector<int32_t>{0, 3, 6}));
  EXPECT_EQ(classes[1].blocks, (std::vector<int32_t>{1}));
  EXPECT_EQ(classes[2].blocks, (std::vector<int32_t>{2}));
  EXPECT_EQ(classes[3].blocks, (std::vector<int32_t>{4}));
  EXPECT_EQ(classes[4].blocks, (std::vector<int32_t>{5}));
  for (size_t i = 1; i < classes.size(); ++i) EXPECT_NE(classes[i].hash, classes[0].hash);
}

TEST(BlockClasses, SharedPersistentInputIsNotTwoInputs) {
  Graph graph;
  Builder build(graph, add_program(graph, "p"), test_op);
  const ValueId a = build.persistent("a", matrix(4, 8), Role::parameter);
  const ValueId b = build.persistent("b", matrix(4, 8), Role::parameter);
  build.set_block(0);
  build.call("add", {a, a});
  build.set_block(1);
  build.call("add", {a, b});
  build.set_block(2);
  build.call("add", {b, b});
  const std::vector<BlockClass> classes = block_classes(graph, 0);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].blocks, (std::vector<int32_t>{0, 2}));
}

TEST(BlockClasses, LoopBodiesBelongToTheStructure) {
  Graph graph;
  Builder build(graph, add_program(graph, "p"), test_op);
  for (int32_t block = 0; block < 3; ++block) {
    build.set_block(block);
    const ValueId x = build.call("zeros", {});
    build.loop("n", {x}, [&](Builder& inner, const std::vector<ValueId>& carried) {
      return std::vector<ValueId>{inner.call(block == 1 ? "relu" : "scale", {carried[0]})};
    });
  }
  const std::vector<BlockClass> classes = block_classes(graph, 0);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].blocks, (std::vector<int32_t>{0, 2}));
}

TEST(BlockClasses, HashIsTheSameOnEveryMachine) {
  Graph graph;
  Builder build(graph, add_program(graph, "p"), test_op);
  build.set_block(7);
  build.call("zeros", {}, {{"rows", int64_t{4}}});
  const std::vector<BlockClass> classes = block_classes(graph, 0);
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].hash, 6416100219828875395u);
}

TEST(RepeatedBlocks, FlatChain) {
  Chain chain;
  for (int i = 0; i < 6; ++i) chain.layer(kNone);
  // The chain's `zeros` comes before the layers.
  EXPECT_EQ(find_repeated_blocks(chain.graph(), chain.region()), expected_blocks(1, 5, 6, 0));
}

TEST(RepeatedBlocks, PrologueAndEpilogueStayOutside) {
  Chain chain;
  chain.prologue();
  for (int i = 0; i < 4; ++i) chain.layer(kNone);
  chain.epilogue();
  // The epilogue's first op equals a layer's first op, so the run could begin one node later, where both the normed
  // value and the stream cross the boundary. It begins where only the stream does.
  const std::vector<int32_t> found = find_repeated_blocks(chain.graph(), chain.region());
  EXPECT_EQ(found, expected_blocks(3, 5, 4, 3));
  set_blocks(chain.graph(), chain.region(), found);
  const std::vector<BlockClass> classes = block_classes(chain.graph(), chain.region());
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].blocks, (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(RepeatedBlocks, RunBegunByThePrologueSlidesToTheNarrowestCut) {
  Chain chain;
  // A lone `add` before the first layer equals a layer's last op.
  chain.x() = chain.build().call("add", {chain.x(), chain.build().call("zeros", {}, {{"rows", int64_t{4}}})});
  for (int i = 0; i < 5; ++i) chain.layer(kNone);
  EXPECT_EQ(find_repeated_blocks(chain.graph(), chain.region()), expected_blocks(3, 5, 5, 0));
}

TEST(RepeatedBlocks, OddLayerInTheMiddleLeavesTheLongerStretch) {
  Chain chain;
  for (int i = 0; i < 3; ++i) chain.layer(kNone);
  chain.layer(kNone, 32);
  for (int i = 0; i < 4; ++i) chain.layer(kNone);
  EXPECT_EQ(find_repeated_blocks(chain.graph(), chain.region()), expected_blocks(1 + 4 * 5, 5, 4, 0));
}

TEST(RepeatedBlocks, NeighboursThatDoNotFeedEachOtherAreNoLayers) {
  Graph graph;
  Builder build(graph, add_program(graph, "p"), test_op);
  const ValueId x = build.call("zeros", {});
  for (int i = 0; i < 4; ++i) {
    const ValueId w = build.persistent("w" + std::to_string(i), matrix(8, 8), Role::parameter);
    build.call("linear", {x, w});
  }
  EXPECT_EQ(find_repeated_blocks(graph, 0), std::vector<int32_t>(5, kNone));
}

TEST(RepeatedBlocks, NothingRepeats) {
  Graph empty;
  add_program(empty, "p");
  EXPECT_TRUE(find_repeated_blocks(empty, 0).empty());
  Chain chain;
  chain.prologue().layer(kNone).epilogue();
  for (int32_t block : find_repeated_blocks(chain.graph(), chain.region())) EXPECT_EQ(block, kNone);
}

TEST(RepeatedBlocks, SetBlocksWantsOneIdPerNode) {
  Chain chain;
  chain.layer(kNone);
  EXPECT_THROW(set_blocks(chain.graph(), chain.region(), {}), InternalError);
}

}  // namespace
}  // namespace headroom
