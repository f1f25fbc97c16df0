// The backward rule of attention: the node that it appends, and the inputs to which it contributes.
#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "ir/vjp.h"
#include "ops/registry.h"

namespace headroom {
namespace {

class OneAttention final : public VjpContext {
 public:
  explicit OneAttention(std::array<bool, 3> wanted, DType dtype = DType::f32)
      : builder_(graph_, add_program(graph_, "step"), find_op), wanted_(wanted) {
    const auto type = [&](int64_t width) { return Type{dtype, {Dim::of(2), Dim::of(5), Dim::of(width)}}; };
    const ValueId q = builder_.persistent("q", type(32), Role::data),
                  k = builder_.persistent("k", type(16), Role::data),
                  v = builder_.persistent("v", type(16), Role::data);
    outputs_ = builder_.append("attention", {q, k, v}, {{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}});
  }
  // The cotangent that the rule gets.
  void give(DType dtype) {
    cotangent_ = builder_.persistent("d", Type{dtype, builder_.type(outputs_[0]).shape}, Role::gradient);
  }
  void differentiate() { find_op("attention").vjp(*this); }

  Builder& build() override { return builder_; }
  const Node& node() const override { return graph_.nodes[0]; }
  ValueId cotangent(int output) override { return output == 0 ? cotangent_ : kNone; }
  bool wants(int input) const override { return wanted_[static_cast<size_t>(input)]; }
  ValueId addend(int) override { return kNone; }
  void contribute(int input, ValueId cotangent) override { contributions[static_cast<size_t>(input)] = cotangent; }
  void set_total(int, ValueId) override { FAIL(); }
  bool trains(int) const override { return false; }
  ValueId accumulator(int) override { return kNone; }
  const char* accumulate(int) const override { return "always"; }
  void set_accumulator(int, ValueId) override { FAIL(); }
  void replace_output(int, ValueId) override { FAIL(); }

  const Graph& graph() const { return graph_; }
  std::array<ValueId, 3> contributions{kNone, kNone, kNone};

 private:
  Graph graph_;
  Builder builder_;
  std::array<bool, 3> wanted_;
  std::vector<ValueId> outputs_;
  ValueId cotangent_ = kNone;
};

TEST(AttentionVjp, AppendsOneGradientForAllInputs) {
  OneAttention context({true, true, true});
  context.give(DType::f32);
  context.differentiate();
  ASSERT_EQ(context.graph().nodes.size(), 2u);
  const Node& grad = context.graph().nodes[1];
  EXPECT_EQ(op_name(*grad.op), "attention_grad");
  EXPECT_EQ(grad.attrs, context.graph().nodes[0].attrs);
  ASSERT_EQ(grad.inputs.size(), 6u);
  EXPECT_EQ(grad.inputs[3], context.output(0));
  EXPECT_EQ(grad.inputs[4], context.output(1));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(context.contributions[i], grad.outputs[i]);
}

TEST(AttentionVjp, ContributesOnlyWhereWanted) {
  OneAttention context({false, false, true});
  context.give(DType::f32);
  context.differentiate();
  EXPECT_EQ(context.contributions[0], kNone);
  EXPECT_EQ(context.contributions[1], kNone);
  EXPECT_EQ(context.contributions[2], context.graph().nodes[1].outputs[2]);
}

TEST(AttentionVjp, CastsACotangentOfAnotherDtype) {
  if (!ops().find("cast")) GTEST_SKIP() << "there is no cast op";
  OneAttention context({true, true, true}, DType::bf16);
  context.give(DType::f32);
  context.differentiate();
  ASSERT_EQ(context.graph().nodes.size(), 3u);
  EXPECT_EQ(context.graph().nodes[2].inputs[5], context.graph().nodes[1].outputs[0]);
  EXPECT_EQ(context.build().type(context.contributions[0]).dtype, DType::bf16);
}

TEST(AttentionVjp, AppendsNothingThatNobodyWants) {
  OneAttention unwanted({false, false, false});
  unwanted.give(DType::f32);
  unwanted.differentiate();
  EXPECT_EQ(unwanted.graph().nodes.size(), 1u);
  OneAttention unused({true, true, true});
  unused.differentiate();
  EXPECT_EQ(unused.graph().nodes.size(), 1u);
}

}  // namespace
}  // namespace headroom
