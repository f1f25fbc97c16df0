// The backward rules of linear: the nodes that they append and where gradients go.
#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "ops/registry.h"

namespace headroom {
namespace {

// A graph with a loss over one or two linear layers, differentiated.
class LinearVjp : public ::testing::Test {
 protected:
  Type type(DType dtype, std::vector<int64_t> dims) const {
    Type out{dtype, {}};
    for (int64_t dim : dims) out.shape.push_back(Dim::of(dim));
    return out;
  }
  ValueId parameter(const char* name, DType dtype, std::vector<int64_t> dims) {
    const ValueId id = build.persistent(name, type(dtype, dims), Role::parameter);
    sinks.accumulators[id] =
        build.persistent(std::string(name) + ".acc", type(DType::f32, std::move(dims)), Role::gradient);
    return id;
  }
  void differentiate_loss_of(ValueId y, ValueId head) {
    const ValueId labels = build.persistent("labels", type(DType::i32, {2, 3}), Role::data);
    const ValueId sums = build.persistent("sums", type(DType::f64, {2}), Role::activation);
    const ValueId scale = build.persistent("scale", type(DType::f32, {1}), Role::data);
    roots = {build.call("linear_cross_entropy", {y, head, labels, sums, scale})};
    differentiate(build, roots, sinks);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (NodeId id : graph.region(build.region()).nodes) out.emplace_back(op_name(*graph.node(id).op));
    return out;
  }
  const Node& last(std::string_view name) const {
    const std::vector<NodeId>& nodes = graph.region(build.region()).nodes;
    for (size_t i = nodes.size(); i > 0; --i)
      if (op_name(*graph.node(nodes[i - 1]).op) == name) return graph.node(nodes[i - 1]);
    throw std::out_of_range(std::string(name));
  }

  Graph graph;
  Builder build{graph, add_program(graph, "step"), find_op};
  GradientSinks sinks;
  std::vector<ValueId> roots;
};

TEST_F(LinearVjp, ResidualIsTheAddendOfTheInputsGradient) {
  const ValueId x = build.persistent("x", type(DType::f32, {2, 3, 8}), Role::data);
  const ValueId first = parameter("first", DType::f32, {8, 8}), bias = parameter("bias", DType::f32, {8});
  const ValueId second = parameter("second", DType::f32, {8, 8}), head = parameter("head", DType::f32, {16, 8});
  const ValueId h = build.call("linear", {x, first, bias}, {{"bias", int64_t{1}}});
  const ValueId y = build.call("linear", {h, second, h}, {{"residual", int64_t{1}}});
  differentiate_loss_of(y, head);
  EXPECT_EQ(names(), (std::vector<std::string>{"linear", "linear", "linear_cross_entropy_grad", "linear_dw",
                                               "linear_dx", "bias_grad", "linear_dw"}));
  const Node& loss = last("linear_cross_entropy_grad");
  EXPECT_EQ(roots, std::vector<ValueId>{loss.outputs[1]});
  EXPECT_EQ(sinks.accumulators.at(head), loss.outputs[2]);
  const Node& dx = last("linear_dx");
  EXPECT_EQ(dx.inputs, (std::vector<ValueId>{loss.outputs[0], second, loss.outputs[0]}));
  EXPECT_EQ(dx.attrs.integer("addend"), 1);
  EXPECT_EQ(last("bias_grad").inputs[0], dx.outputs[0]);
  EXPECT_EQ(last("linear_dw").inputs[1], dx.outputs[0]);
  EXPECT_EQ(last("linear_dw").attrs.text("accumulate"), "carried");
  EXPECT_EQ(sinks.accumulators.at(first), last("linear_dw").outputs[0]);
}

TEST_F(LinearVjp, SharedWeightIsOverwrittenOnceThenAddedTo) {
  const ValueId x = build.persistent("x", type(DType::f32, {2, 3, 8}), Role::data);
  const ValueId shared = parameter("shared", DType::f32, {8, 8}), head = parameter("head", DType::f32, {16, 8});
  const ValueId y = build.call("linear", {build.call("linear", {x, shared}), shared});
  differentiate_loss_of(y, head);
  EXPECT_EQ(last("linear_dw").attrs.text("accumulate"), "always");
  EXPECT_EQ(names(), (std::vector<std::string>{"linear", "linear", "linear_cross_entropy_grad", "linear_dw",
                                               "linear_dx", "linear_dw"}));
}

TEST_F(LinearVjp, FrozenWeightsGetNoGradient) {
  const ValueId x = build.persistent("x", type(DType::f32, {2, 3, 8}), Role::data);
  const ValueId first = parameter("first", DType::f32, {8, 8});
  const ValueId frozen = build.persistent("frozen", type(DType::f32, {8, 8}), Role::parameter);
  const ValueId head = build.persistent("head", type(DType::f32, {16, 8}), Role::parameter);
  const ValueId y = build.call("linear", {build.call("linear", {x, first}), frozen});
  differentiate_loss_of(y, head);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"linear", "linear", "linear_cross_entropy_grad", "linear_dx", "linear_dw"}));
  EXPECT_EQ(last("linear_cross_entropy_grad").attrs.integer("train_weight"), 0);
}

TEST_F(LinearVjp, WideCotangentOfNarrowOperandsIsCastOnce) {
  if (!ops().find("cast") || !ops().find("add")) GTEST_SKIP() << "there is no cast op";
  const ValueId x = build.persistent("x", type(DType::bf16, {2, 3, 8}), Role::data);
  const ValueId first = parameter("first", DType::bf16, {8, 8}), second = parameter("second", DType::bf16, {8, 8});
  const ValueId head = parameter("head", DType::f32, {16, 8});
  const ValueId h = build.call("linear", {x, first});
  const ValueId stream = build.persistent("stream", type(DType::f32, {2, 3, 8}), Role::data);
  const ValueId y =
      build.call("linear", {h, second, stream}, {{"residual", int64_t{1}}, {"dtype", std::string("f32")}});
  differentiate_loss_of(y, head);
  EXPECT_EQ(names(), (std::vector<std::string>{"linear", "linear", "linear_cross_entropy_grad", "cast", "linear_dw",
                                               "linear_dx", "linear_dw"}));
  EXPECT_EQ(build.type(last("linear_dx").outputs[0]).dtype, DType::bf16);
}

}  // namespace
}  // namespace headroom
