// Rules of asynchronous transfers: copies between tiers and collectives start here and are usable after `wait`.
#include <memory>

#include "ir/tier_bytes.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

Type token() { return Type{DType::i32, {Dim::of(1)}}; }

class TransferOp : public Op {
 public:
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// (x, [y]) -> (x in tier `to`, token). With y, a value in that tier, the result uses y's storage. Attribute "from" is
// "disk" if x is on the disk, else absent.
class CopyStart final : public TransferOp {
 public:
  std::string_view name() const override { return "copy_start"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    return inputs == 1 ? OperandNames{"x"} : OperandNames{"x", "destination"};
  }
  OpKind kind() const override { return OpKind::copy_start; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    HR_CHECK(inputs.size() == 1 || inputs.size() == 2, "copy_start: {} inputs", inputs.size());
    const std::optional<Tier> to = parse_tier(attrs.text("to"));
    HR_CHECK(to, "copy_start: no tier '{}'", attrs.text("to"));
    HR_CHECK(attrs.text("from") == (inputs[0].tier == Tier::disk ? "disk" : ""),
             "copy_start: from '{}', but its source lies on the {}", attrs.text("from"), tier_name(inputs[0].tier));
    Type y = inputs[0];
    y.tier = *to;
    HR_CHECK(inputs.size() == 1 || inputs[1] == y, "copy_start: its destination is of another type");
    return {y, token()};
  }
  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    if (inputs < 2) return {};
    return {{0, 1, true}};
  }
  // The bytes that cross the link between the tiers.
  Work work(const OpCall& call) const override { return {0, static_cast<double>(storage_bytes(call.outputs[0]))}; }
  CostClass cost_class() const override { return CostClass::copy; }
};

// (y, token) -> y, complete
class Wait final : public TransferOp {
 public:
  std::string_view name() const override { return "wait"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "token"}; }
  OpKind kind() const override { return OpKind::wait; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    HR_CHECK(inputs.size() == 2, "wait: {} inputs, not 2", inputs.size());
    require_type(name(), "the token", inputs[1], token());
    return {inputs[0]};
  }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, true}}; }
  Work work(const OpCall&) const override { return {}; }
  CostClass cost_class() const override { return CostClass::none; }
};

// Every rank runs the collectives of a program in the same order.
class Collective : public TransferOp {
 public:
  OpKind kind() const override { return OpKind::collective_start; }
  CostClass cost_class() const override { return CostClass::collective; }
  bool has_effect() const override { return true; }

 protected:
  // The shard spec of attributes "axis" (0: shards are contiguous) and "parts".
  ShardSpec spec(const Type& x, const Attrs& attrs) const {
    const int64_t axis = attrs.integer("axis");
    const int64_t parts = attrs.integer("parts");
    HR_CHECK(axis == 0, "{}: shards along axis {}, only axis 0 is contiguous", name(), axis);
    HR_CHECK(parts >= 1 && parts <= 1 << 20, "{}: {} parts", name(), parts);
    HR_CHECK(!x.shape.empty(), "{}: x is a scalar", name());
    return {0, static_cast<int32_t>(parts)};
  }
  void require_sum(const Attrs& attrs) const {
    HR_CHECK(attrs.text("reduce", "sum") == "sum", "{}: no reduction '{}'", name(), attrs.text("reduce"));
  }
};

// (x, sharded) -> (x whole, token)
class AllGatherStart final : public Collective {
 public:
  std::string_view name() const override { return "all_gather_start"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    const ShardSpec shard = spec(inputs[0], attrs);
    HR_CHECK(inputs[0].shard == shard, "all_gather_start: x is not sharded in {} along axis 0", shard.parts);
    Type full = inputs[0];
    full.shard.reset();
    return {full, token()};
  }
};

// (x whole, one addend per rank) -> (this rank's shard of the sum, token)
class ReduceScatterStart final : public Collective {
 public:
  std::string_view name() const override { return "reduce_scatter_start"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_sum(attrs);
    const Type& x = inputs[0];
    HR_CHECK(x.dtype == DType::f32 && !x.shard, "reduce_scatter_start: x is f32 and whole");
    Type local = x;
    local.shard = spec(x, attrs);
    return {local, token()};
  }
};

// (x, one addend per rank) -> (the sum, token)
class AllReduceStart final : public Collective {
 public:
  std::string_view name() const override { return "all_reduce_start"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_sum(attrs);
    HR_CHECK(inputs[0].dtype == DType::f32 || inputs[0].dtype == DType::f64, "all_reduce_start: x is f32 or f64");
    return {inputs[0], token()};
  }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, false}}; }
};

}  // namespace

void register_transfer_ops(OpRegistry& registry) {
  registry.add(std::make_unique<CopyStart>());
  registry.add(std::make_unique<Wait>());
  registry.add(std::make_unique<AllGatherStart>());
  registry.add(std::make_unique<ReduceScatterStart>());
  registry.add(std::make_unique<AllReduceStart>());
}

}  // namespace headroom
