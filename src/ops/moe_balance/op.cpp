// Rules of the load-balancing loss of experts (Fedus et al. 2021, equations 4 to 6, over all layers together, as
// transformers computes it for Mixtral and Qwen3-MoE): E sum_e c_e p_e / N^2, where c_e counts the tokens that chose
// expert e, p_e sums its probabilities and N counts the tokens, each once per layer, padding left out. The sums of a
// micro-batch go from layer to layer in one vector, f32[2 E + 1] = c, p, N.
#include <memory>

#include "ir/vjp.h"
#include "ops/moe_balance/sizes.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

int64_t experts_of(std::string_view op, const Type& logits) {
  require_float(op, "logits", logits, 3);
  HR_CHECK(logits.shape.size() == 3 && !logits.shard, "{}: logits are [batch, seq, experts], whole", op);
  return constant_dim(op, "the number of experts", logits.shape.back());
}

Type sums_type(int64_t experts) { return Type{DType::f32, {Dim::of(balance_length(experts))}}; }

void require_lengths(std::string_view op, const Type& found, const Type& logits) {
  require_whole(op, "lengths", found, DType::i32, {logits.shape[0]});
}

// The number of experts of a vector of sums.
int64_t experts_of_sums(std::string_view op, const Type& sums) {
  HR_CHECK(sums.shape.size() == 1, "{}: sums are a vector", op);
  const int64_t experts = experts_of_balance(constant_dim(op, "the sums' length", sums.shape[0]));
  HR_CHECK(experts >= 1, "{}: sums of {} experts", op, experts);
  require_type(op, "sums", sums, sums_type(experts));
  return experts;
}

void require_coefficient(std::string_view op, const Attrs& attrs) {
  const double coefficient = attrs.real("coefficient", -1);
  HR_CHECK(coefficient >= 0 && coefficient <= 1e9, "{}: coefficient is {}", op, coefficient);
}

// Kept rather than computed again: a few numbers that the next layer reads at once.
class BalanceOp : public Op {
 public:
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// -> sums of nothing, of "experts"
class Begin final : public BalanceOp {
 public:
  std::string_view name() const override { return "moe_balance_begin"; }
  OperandNames operands(const Attrs&, size_t) const override { return {}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 0);
    const int64_t experts = attrs.integer("experts");
    HR_CHECK(experts >= 1 && experts <= 1 << 20, "moe_balance_begin: {} experts", experts);
    return {sums_type(experts)};
  }
};

// logits[batch, seq, E], rows and offsets as moe_route made them, lengths i32[batch] (tokens of each row before its
// padding), sums -> sums with this layer's
class Balance final : public BalanceOp {
 public:
  std::string_view name() const override { return "moe_balance"; }
  OperandNames operands(const Attrs&, size_t) const override {
    return {"logits", "rows", "offsets", "lengths", "sums"};
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 5);
    const Type &logits = inputs[BalanceInputs::logits], &rows = inputs[BalanceInputs::rows];
    const int64_t experts = experts_of(name(), logits);
    HR_CHECK(rows.shape.size() == 3, "moe_balance: rows are [batch, seq, top_k]");
    constant_dim(name(), "top_k", rows.shape.back());
    require_whole(name(), "rows", rows, DType::i32, {logits.shape[0], logits.shape[1], rows.shape.back()});
    require_whole(name(), "offsets", inputs[BalanceInputs::offsets], DType::i32, {Dim::of(experts + 1)});
    require_lengths(name(), inputs[BalanceInputs::lengths], logits);
    require_type(name(), "sums", inputs[BalanceInputs::sums], sums_type(experts));
    return {sums_type(experts)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, BalanceInputs::sums, false}}; }
  Work work(const OpCall& call) const override {
    Work work = Op::work(call);
    work.flops = 6.0 * static_cast<double>(element_count(call.inputs[BalanceInputs::logits].dims));
    return work;
  }

  // The counts have no gradient; that by the probabilities goes to every layer alike.
  void vjp(VjpContext& context) const override {
    const ValueId dsums = context.cotangent(0);
    if (dsums == kNone) return;
    context.contribute(BalanceInputs::sums, dsums);
    if (!context.wants(BalanceInputs::logits)) return;
    const ValueId logits = context.input(BalanceInputs::logits), lengths = context.input(BalanceInputs::lengths);
    context.contribute(BalanceInputs::logits,
                       context.build().call("moe_balance_grad", {logits, lengths, dsums}, {}, Role::gradient));
  }
};

// logits, lengths, dsums -> dlogits, by the probabilities alone
class BalanceGrad final : public Op {
 public:
  std::string_view name() const override { return "moe_balance_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"logits", "lengths", "dsums"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 3);
    const int64_t experts = experts_of(name(), inputs[BalanceGradInputs::logits]);
    require_lengths(name(), inputs[BalanceGradInputs::lengths], inputs[BalanceGradInputs::logits]);
    require_type(name(), "dsums", inputs[BalanceGradInputs::dsums], sums_type(experts));
    return {computed(inputs[BalanceGradInputs::logits], inputs[BalanceGradInputs::logits].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, BalanceGradInputs::logits, false}}; }

  Work work(const OpCall& call) const override {
    Work work = Op::work(call);
    work.flops = 8.0 * static_cast<double>(element_count(call.inputs[BalanceGradInputs::logits].dims));
    return work;
  }
};

// sums, labels i32[batch, seq], losses f64[2 or 3] (ops/linear_cross_entropy), scale f32[1] -> losses [+]= (coefficient
// times the loss of `sums`, weighted by the micro-batch's targets; 0). Labels are those of the next token: position 0
// is none. Attribute "accumulate" as in linear_cross_entropy.
class BalanceLoss final : public BalanceOp {
 public:
  std::string_view name() const override { return "moe_balance_loss"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"sums", "labels", "losses", "scale"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 4);
    experts_of_sums(name(), inputs[BalanceLossInputs::sums]);
    require_coefficient(name(), attrs);
    require_accumulate(name(), attrs);
    HR_CHECK(
        inputs[BalanceLossInputs::labels].dtype == DType::i32 && inputs[BalanceLossInputs::labels].shape.size() == 2,
        "moe_balance_loss: labels are i32[b, s]");
    HR_CHECK(
        inputs[BalanceLossInputs::losses].dtype == DType::f64 && inputs[BalanceLossInputs::losses].shape.size() == 1,
        "moe_balance_loss: losses are f64[n]");
    require_whole(name(), "scale", inputs[BalanceLossInputs::scale], DType::f32, {Dim::of(1)});
    return {inputs[BalanceLossInputs::losses]};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, BalanceLossInputs::losses, true}}; }
  bool spans_batch() const override { return true; }
  void leave_training(std::vector<int32_t>&, Attrs& attrs) const override { attrs.set("coefficient", 0.0); }

  // A part of the loss, which is the root of differentiation: its weight is `scale`, whatever the cotangent.
  void vjp(VjpContext& context) const override {
    if (!context.wants(BalanceLossInputs::sums)) return;
    context.contribute(
        BalanceLossInputs::sums,
        context.build().call("moe_balance_loss_grad",
                             {context.input(BalanceLossInputs::sums), context.input(BalanceLossInputs::labels),
                              context.input(BalanceLossInputs::scale)},
                             {{"coefficient", context.attrs().real("coefficient")}}, Role::gradient));
  }
};

// sums, labels, scale -> dsums = scale * targets * coefficient * d loss / d p; 0 for the counts
class BalanceLossGrad final : public BalanceOp {
 public:
  std::string_view name() const override { return "moe_balance_loss_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"sums", "labels", "scale"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 3);
    const int64_t experts = experts_of_sums(name(), inputs[BalanceLossGradInputs::sums]);
    require_coefficient(name(), attrs);
    HR_CHECK(inputs[BalanceLossGradInputs::labels].dtype == DType::i32 &&
                 inputs[BalanceLossGradInputs::labels].shape.size() == 2,
             "moe_balance_loss_grad: labels are i32[b, s]");
    require_whole(name(), "scale", inputs[BalanceLossGradInputs::scale], DType::f32, {Dim::of(1)});
    return {sums_type(experts)};
  }
};

}  // namespace

void register_moe_balance_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Begin>());
  registry.add(std::make_unique<Balance>());
  registry.add(std::make_unique<BalanceGrad>());
  registry.add(std::make_unique<BalanceLoss>());
  registry.add(std::make_unique<BalanceLossGrad>());
}

}  // namespace headroom
