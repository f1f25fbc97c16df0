// Structure of the backward pass: which nodes, in which order, adding to what. tests/oracle compares values.
#include "autodiff/differentiate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace headroom {
namespace {

Type floats(std::initializer_list<int64_t> dims) {
  Type type{DType::f32, {}};
  for (int64_t dim : dims) type.shape.push_back(Dim::of(dim));
  return type;
}

const Attrs kPlain{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}};
const Attrs kResidual{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{1}}};

// embedding -> body -> head (tied to the embedding if `tied`) -> loss, differentiated with respect to the weights in
// `trained`.
class Network {
 public:
  Network() : build_(graph_, add_program(graph_, "p"), find_op) {
    embed = weight("embed", {32, 8});
    head = weight("head", {32, 8});
    labels_ = build_.persistent("labels", Type{DType::i32, {Dim::of(2), Dim::of(4)}}, Role::data);
    scale_ = build_.persistent("scale", floats({1}), Role::data);
  }

  ValueId weight(const std::string& name, std::initializer_list<int64_t> dims) {
    return build_.persistent(name, floats(dims), Role::parameter);
  }
  ValueId begin() { return build_.call("embedding", {labels_, embed}); }
  ValueId linear(ValueId x, ValueId w) { return build_.call("linear", {x, w}, kPlain); }

  void differentiate_from(ValueId hidden, ValueId projection, const std::vector<ValueId>& trained) {
    const ValueId start = build_.call("allocate", {}, {{"dtype", "f64"}, {"dims", "2"}}, Role::workspace);
    std::vector<ValueId> roots{build_.call("linear_cross_entropy", {hidden, projection, labels_, start, scale_},
                                           {{"layout", "out_in"}, {"chunk", int64_t{0}}, {"accumulate", "always"}},
                                           Role::workspace)};
    graph_.region(build_.region()).results = roots;
    for (ValueId id : trained)
      sinks.accumulators[id] =
          build_.persistent(graph_.value(id).name + ".grad", graph_.value(id).type, Role::gradient);
    before = sinks.accumulators;
    differentiate(build_, roots, sinks);
    verify_or_throw(graph_, "differentiate");
  }

  // Ops of a stage, in program order.
  std::vector<std::string> ops(Stage stage) const {
    std::vector<std::string> names;
    for (NodeId id : graph_.region(build_.region()).nodes)
      if (graph_.node(id).stage == stage) names.emplace_back(op_name(*graph_.node(id).op));
    return names;
  }
  int count(const std::string& op) const {
    const std::vector<std::string> names = ops(Stage::backward);
    return static_cast<int>(std::count(names.begin(), names.end(), op));
  }
  std::vector<std::string> accumulate_modes() const {
    std::vector<std::string> modes;
    for (NodeId id : graph_.region(build_.region()).nodes)
      if (graph_.node(id).stage == Stage::backward && graph_.node(id).attrs.has("accumulate"))
        modes.emplace_back(graph_.node(id).attrs.text("accumulate"));
    return modes;
  }
  Builder& build() { return build_; }
  Graph& graph() { return graph_; }

  ValueId embed = kNone, head = kNone;
  GradientSinks sinks;
  std::map<ValueId, ValueId> before;

 private:
  Graph graph_;
  Builder build_;
  ValueId labels_ = kNone, scale_ = kNone;
};

TEST(Differentiate, BackwardNodesFollowTheForwardOnesInReverse) {
  Network net;
  const ValueId w = net.weight("w", {8, 8});
  const ValueId x = net.begin();
  net.build().set_block(3);
  const ValueId y = net.linear(x, w);
  net.build().set_block(kNone);
  net.differentiate_from(y, net.head, {net.embed, net.head, w});
  const std::vector<std::string> backward = net.ops(Stage::backward);
  ASSERT_GE(backward.size(), 4u);
  EXPECT_EQ(backward.front(), "linear_cross_entropy_grad");
  EXPECT_EQ(backward.back(), "embedding_grad");
  EXPECT_EQ(net.count("linear_dw"), 1);
  EXPECT_EQ(net.count("linear_dx"), 1);
  for (const Node& node : net.graph().nodes)
    if (op_name(*node.op) == "linear_dw" || op_name(*node.op) == "linear_dx") {
      EXPECT_EQ(node.block, 3);
    }
}

TEST(Differentiate, TheLossIsReplacedByItsFusedGradient) {
  Network net;
  net.differentiate_from(net.begin(), net.head, {net.embed, net.head});
  const std::vector<std::string> forward = net.ops(Stage::forward);
  EXPECT_EQ(std::count(forward.begin(), forward.end(), "linear_cross_entropy"), 0);
  EXPECT_EQ(net.count("linear_cross_entropy_grad"), 1);
}

TEST(Differentiate, EveryAccumulatorIsUpdated) {
  Network net;
  const ValueId w = net.weight("w", {8, 8});
  net.differentiate_from(net.linear(net.begin(), w), net.head, {net.embed, net.head, w});
  for (const auto& [parameter, accumulator] : net.sinks.accumulators) EXPECT_NE(accumulator, net.before.at(parameter));
}

TEST(Differentiate, ASharedWeightIsWrittenOnceAndAddedToAfterwards) {
  Network net;
  net.differentiate_from(net.begin(), net.embed, {net.embed});
  EXPECT_EQ(net.accumulate_modes(), (std::vector<std::string>{"carried", "always"}));
}

TEST(Differentiate, FrozenWeightsCostNothing) {
  Network net;
  const ValueId below = net.weight("below", {8, 8}), above = net.weight("above", {8, 8});
  net.differentiate_from(net.linear(net.linear(net.begin(), below), above), net.head, {above});
  EXPECT_EQ(net.count("linear_dw"), 1);  // only that of `above`
  EXPECT_EQ(net.count("linear_dx"), 0);  // no trained weight lies below
  EXPECT_EQ(net.count("embedding_grad"), 0);
}

TEST(Differentiate, AValueReadTwiceGathersBothCotangents) {
  Network net;
  const ValueId w = net.weight("w", {8, 8});
  const ValueId x = net.begin();
  const ValueId y = net.build().call("linear", {x, w, x}, kResidual);
  net.differentiate_from(y, net.head, {net.embed, net.head, w});
  // The residual's cotangent is an addend of the product or a separate node; in both cases one value reaches the
  // embedding.
  EXPECT_EQ(net.count("embedding_grad"), 1);
  EXPECT_LE(net.count("add"), 1);
}

TEST(Differentiate, AnUnusedWeightKeepsItsAccumulator) {
  Network net;
  const ValueId unused = net.weight("unused", {8, 8});
  net.differentiate_from(net.begin(), net.head, {net.embed, net.head, unused});
  EXPECT_EQ(net.sinks.accumulators.at(unused), net.before.at(unused));
}

}  // namespace
}  // namespace headroom
