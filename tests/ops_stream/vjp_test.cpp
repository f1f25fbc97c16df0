// The backward nodes that each rule appends, seen through a context that records them.
#include <gtest/gtest.h>

#include <map>

#include "ir/vjp.h"
#include "ops/registry.h"

namespace headroom {
namespace {

class FakeContext final : public VjpContext {
 public:
  // A node of `op` with new inputs; the backward nodes go to the same region.
  FakeContext(std::string_view op, std::vector<Type> inputs, Attrs attrs = {})
      : builder_(graph_, add_program(graph_, "step"), find_op) {
    std::vector<ValueId> ids;
    for (Type& type : inputs) ids.push_back(fresh(std::move(type)));
    builder_.append(op, ids, std::move(attrs));
    node_ = graph_.node(0);
  }
  ValueId fresh(Type type) { return add_value(graph_, std::move(type), Role::activation); }
  // Gives output i a cotangent.
  ValueId seed(int output) {
    return cotangents[output] = fresh(builder_.type(node_.outputs.at(static_cast<size_t>(output))));
  }
  // The last node of the backward, after running the rule.
  void run() { node_.op->vjp(*this); }
  const Node& last() const { return graph_.nodes.back(); }
  size_t backward_nodes() const { return graph_.nodes.size() - 1; }

  Builder& build() override { return builder_; }
  const Node& node() const override { return node_; }
  ValueId cotangent(int output) override { return cotangents.contains(output) ? cotangents[output] : kNone; }
  bool wants(int input) const override { return wanted.contains(input); }
  ValueId addend(int input) override { return addends.contains(input) ? addends[input] : kNone; }
  void contribute(int input, ValueId value) override { contributions[input] = value; }
  void set_total(int input, ValueId value) override { totals[input] = value; }
  bool trains(int input) const override { return accumulators.contains(input); }
  ValueId accumulator(int input) override { return accumulators.at(input); }
  const char* accumulate(int input) const override { return "carried"; }
  void set_accumulator(int input, ValueId value) override { updated[input] = value; }
  void replace_output(int, ValueId) override { FAIL(); }

  std::map<int, ValueId> cotangents, addends, contributions, totals, accumulators, updated;
  std::map<int, bool> wanted;

 private:
  Graph graph_;
  Builder builder_;
  Node node_;
};

Type matrix(DType dtype, int64_t width) { return Type{dtype, {Dim::of(2), Dim::of(3), Dim::of(width)}}; }
const Type kX = matrix(DType::f32, 4);
const Type kW{DType::f32, {Dim::of(4)}};

TEST(Vjp, RmsNormFusesAddendAndWeight) {
  FakeContext context("rms_norm", {kX, kW}, {{"eps", 1e-5}, {"dtype", "bf16"}});
  const ValueId dy = context.seed(0), addend = context.fresh(kX), acc = context.fresh(kW);
  context.wanted[0] = true;
  context.addends[0] = addend;
  context.accumulators[1] = acc;
  context.run();
  ASSERT_EQ(context.backward_nodes(), 1u);
  EXPECT_EQ(context.last().inputs, (std::vector<ValueId>{context.input(0), context.input(1), dy, acc, addend}));
  EXPECT_EQ(context.totals.at(0), context.last().outputs[0]);
  EXPECT_EQ(context.updated.at(1), context.last().outputs[1]);
  EXPECT_EQ(context.last().attrs.text("accumulate"), "carried");
}

TEST(Vjp, NormsDoOnlyWhatIsAsked) {
  for (const char* op : {"rms_norm", "layer_norm"}) {
    std::vector<Type> inputs{kX, kW};
    if (op == std::string("layer_norm")) inputs.push_back(kW);
    FakeContext unused(op, inputs, {{"eps", 1e-5}});
    unused.wanted[0] = true;
    unused.run();
    EXPECT_EQ(unused.backward_nodes(), 0u);
    FakeContext frozen(op, inputs, {{"eps", 1e-5}});
    frozen.seed(0);
    frozen.run();
    EXPECT_EQ(frozen.backward_nodes(), 0u);
    FakeContext weight(op, inputs, {{"eps", 1e-5}});
    weight.seed(0);
    weight.accumulators[1] = weight.fresh(kW);
    weight.run();
    EXPECT_EQ(weight.backward_nodes(), 1u);
    EXPECT_TRUE(weight.totals.empty());
    EXPECT_EQ(weight.updated.at(1), weight.last().outputs[1]);
  }
}

TEST(Vjp, LayerNormTrainsBiasAlone) {
  FakeContext context("layer_norm", {kX, kW, kW}, {{"eps", 1e-5}});
  context.seed(0);
  context.wanted[0] = true;
  context.accumulators[2] = context.fresh(kW);
  context.run();
  EXPECT_EQ(context.last().attrs.integer("train"), 2);
  EXPECT_EQ(context.updated.at(2), context.last().outputs[1]);
  EXPECT_EQ(context.totals.at(0), context.last().outputs[0]);
}

TEST(Vjp, Embeddings) {
  const Type ids{DType::i32, {Dim::of(2), Dim::of(3)}}, table{DType::f32, {Dim::of(9), Dim::of(4)}};
  FakeContext embedding("embedding", {ids, table});
  embedding.seed(0);
  embedding.accumulators[1] = embedding.fresh(table);
  embedding.run();
  EXPECT_EQ(embedding.updated.at(1), embedding.last().outputs[0]);
  FakeContext position("position_embedding", {kX, table});
  const ValueId dy = position.seed(0);
  position.wanted[0] = true;
  position.accumulators[1] = position.fresh(table);
  position.run();
  EXPECT_EQ(position.contributions.at(0), dy);
  EXPECT_EQ(position.updated.at(1), position.last().outputs[0]);
}

TEST(Vjp, RotaryTurnsBack) {
  const Type table{DType::f32, {Dim::of(9), Dim::of(2)}};
  FakeContext context("rotary", {kX, table}, {{"heads", int64_t{2}}});
  const ValueId dy = context.seed(0);
  context.wanted[0] = true;
  context.run();
  EXPECT_EQ(context.last().inputs, (std::vector<ValueId>{dy, context.input(1)}));
  EXPECT_EQ(context.last().attrs.integer("inverse"), 1);
  EXPECT_EQ(context.contributions.at(0), context.last().outputs[0]);
}

TEST(Vjp, Elementwise) {
  FakeContext add("add", {kX, kX});
  const ValueId dy = add.seed(0);
  add.wanted[1] = true;
  add.run();
  EXPECT_EQ(add.contributions, (std::map<int, ValueId>{{1, dy}}));
  FakeContext swiglu("swiglu", {kX, kX});
  swiglu.seed(0);
  swiglu.wanted = {{0, true}, {1, true}};
  swiglu.run();
  EXPECT_EQ(swiglu.contributions,
            (std::map<int, ValueId>{{0, swiglu.last().outputs[0]}, {1, swiglu.last().outputs[1]}}));
  FakeContext gelu("gelu", {kX}, {{"approximate", "tanh"}});
  gelu.seed(0);
  gelu.wanted[0] = true;
  gelu.run();
  EXPECT_EQ(gelu.last().attrs.text("approximate"), "tanh");
  FakeContext cast("cast", {kX}, {{"dtype", "bf16"}});
  cast.seed(0);
  cast.wanted[0] = true;
  cast.run();
  EXPECT_EQ(cast.build().type(cast.contributions.at(0)), kX);
}

// A node's attributes about its arithmetic also apply to its gradient.
TEST(Vjp, VariantsPassToTheGradient) {
  FakeContext norm("rms_norm", {kX, Type{DType::f32, {Dim::of(2)}}}, {{"eps", 1e-5}, {"unit", int64_t{1}}});
  norm.seed(0);
  norm.wanted[0] = true;
  norm.accumulators[1] = norm.fresh(Type{DType::f32, {Dim::of(2)}});
  norm.run();
  EXPECT_EQ(norm.last().attrs.integer("unit"), 1);
  EXPECT_EQ(norm.updated.at(1), norm.last().outputs[1]);
  FakeContext gated("swiglu", {kX, kX}, {{"activation", "gelu_tanh"}});
  gated.seed(0);
  gated.wanted[1] = true;
  gated.run();
  EXPECT_EQ(gated.last().attrs.text("activation"), "gelu_tanh");
  const Type table{DType::f32, {Dim::of(9), Dim::of(4)}};
  FakeContext position("position_embedding", {kX, table}, {{"first", int64_t{2}}});
  position.seed(0);
  position.accumulators[1] = position.fresh(table);
  position.run();
  EXPECT_EQ(position.last().attrs.integer("first"), 2);
  const Type ids{DType::i32, {Dim::of(2), Dim::of(3)}};
  FakeContext lookup("embedding", {ids, table}, {{"padding", int64_t{7}}});
  lookup.seed(0);
  lookup.accumulators[1] = lookup.fresh(table);
  lookup.run();
  EXPECT_EQ(lookup.last().attrs.integer("padding"), 7);
}

TEST(Vjp, ScaleAndSoftcap) {
  FakeContext scale("scale", {kX}, {{"factor", 3.0}});
  const ValueId dy = scale.seed(0);
  scale.wanted[0] = true;
  scale.run();
  EXPECT_EQ(scale.last().inputs, std::vector<ValueId>{dy});
  EXPECT_EQ(scale.last().attrs.real("factor"), 3);
  FakeContext softcap("softcap", {kX}, {{"cap", 5.0}});
  const ValueId gradient = softcap.seed(0);
  softcap.wanted[0] = true;
  softcap.run();
  EXPECT_EQ(softcap.last().inputs, (std::vector<ValueId>{softcap.output(0), gradient}));  // of the capped value
  EXPECT_EQ(softcap.contributions.at(0), softcap.last().outputs[0]);
}

TEST(Vjp, SplitByGroupsIsJoinedByGroups) {
  FakeContext split("split", {kX}, {{"sizes", "1,1"}, {"groups", int64_t{2}}});
  split.wanted[0] = true;
  split.seed(1);
  split.run();
  EXPECT_EQ(split.last().attrs.integer("groups"), 2);
  EXPECT_EQ(split.build().type(split.contributions.at(0)), kX);
}

TEST(Vjp, SplitAndConcat) {
  FakeContext split("split", {kX}, {{"sizes", "1,2,1"}});
  split.wanted[0] = true;
  split.seed(1);
  split.run();
  EXPECT_EQ(split.last().attrs.text("present"), "010");
  EXPECT_EQ(split.build().type(split.contributions.at(0)), kX);
  split.seed(0), split.seed(2);
  split.run();
  EXPECT_FALSE(split.last().attrs.has("present"));
  FakeContext concat("concat", {matrix(DType::f32, 1), matrix(DType::f32, 3)});
  concat.seed(0);
  concat.wanted[1] = true;
  concat.run();
  EXPECT_EQ(concat.build().type(concat.contributions.at(1)), matrix(DType::f32, 3));
  EXPECT_FALSE(concat.contributions.contains(0));
}

TEST(Vjp, DropoutDropsTheSameElementsOfTheCotangent) {
  const Attrs attrs{{"rate", 0.25}, {"tensor", int64_t{7}}};
  FakeContext context("dropout", {kX, Type{DType::f32, {Dim::of(16)}}}, attrs);
  const ValueId dy = context.seed(0);
  context.wanted[0] = true;
  context.run();
  ASSERT_EQ(context.backward_nodes(), 1u);
  EXPECT_EQ(op_name(*context.last().op), "dropout");
  EXPECT_EQ(context.last().attrs, attrs);
  EXPECT_EQ(context.last().inputs, (std::vector<ValueId>{dy, context.input(1)}));
  EXPECT_EQ(context.contributions.at(0), context.last().outputs[0]);
}

}  // namespace
}  // namespace headroom
