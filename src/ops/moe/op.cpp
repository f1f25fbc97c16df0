// Rules of routing: which experts a token is sent to and with what weight, the copies of tokens sorted by expert, and
// the weighted sum of what the experts return. No token is dropped: each has `top_k` rows.
#include <memory>

#include "ir/vjp.h"
#include "ops/moe/operands.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

int64_t experts_of(std::string_view op, const Type& logits) {
  return constant_dim(op, "the number of experts", logits.shape.back());
}

std::vector<Dim> with_last(const Type& type, Dim last) {
  HR_CHECK(!type.shape.empty(), "a scalar has no last dimension");
  std::vector<Dim> shape(type.shape.begin(), type.shape.end() - 1);
  shape.push_back(last);
  return shape;
}

// rows is i32[..., chosen]; returns the shape [..., width] of a tensor with a row per token.
std::vector<Dim> token_shape(std::string_view op, const Type& rows, Dim width) {
  HR_CHECK(rows.dtype == DType::i32 && !rows.shape.empty() && !rows.shard, "{}: rows is i32[..., top_k], whole", op);
  constant_dim(op, "top_k", rows.shape.back());
  return with_last(rows, width);
}

// The shape [..., chosen, width] of a tensor with a row per pair of a token and an expert.
std::vector<Dim> pair_shape(const Type& rows, Dim width) {
  std::vector<Dim> shape = rows.shape;
  shape.push_back(width);
  return shape;
}

// logits[..., experts] -> weights f32[..., top_k], rows i32[..., top_k], offsets i32[experts + 1]
class Route final : public Op {
 public:
  std::string_view name() const override { return "moe_route"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"logits"}; }
  OpKind kind() const override { return OpKind::router; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_float(name(), "logits", inputs[0], 2);
    HR_CHECK(!inputs[0].shard, "moe_route: logits are whole");
    flag(name(), attrs, "normalised");
    const int64_t experts = experts_of(name(), inputs[0]), chosen = attrs.integer("top_k");
    HR_CHECK(chosen >= 1 && chosen <= experts, "moe_route: top_k is {} of {} experts", chosen, experts);
    const std::vector<Dim> shape = with_last(inputs[0], Dim::of(chosen));
    return {{DType::f32, shape}, {DType::i32, shape}, {DType::i32, {Dim::of(experts + 1)}}};
  }

  Work work(const OpCall& call) const override {
    Work work = Op::work(call);
    work.flops = 4.0 * static_cast<double>(element_count(call.inputs[0].dims));
    return work;
  }

  void vjp(VjpContext& context) const override {
    const ValueId dweights = context.cotangent(RouteOutputs::weights);
    if (dweights == kNone || !context.wants(0)) return;
    context.contribute(
        0, context.build().call(
               "moe_route_grad",
               {context.input(0), dweights, context.output(RouteOutputs::rows), context.output(RouteOutputs::offsets)},
               {{"normalised", context.attrs().integer("normalised")}}, Role::gradient));
  }
};

// logits, dweights, rows, offsets -> dlogits
class RouteGrad final : public Op {
 public:
  std::string_view name() const override { return "moe_route_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"logits", "dweights", "rows", "offsets"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 4);
    require_float(name(), "logits", inputs[RouteGradInputs::logits], 2);
    flag(name(), attrs, "normalised");
    const int64_t experts = experts_of(name(), inputs[RouteGradInputs::logits]);
    HR_CHECK(
        inputs[RouteGradInputs::logits].shape == token_shape(name(), inputs[RouteGradInputs::rows], Dim::of(experts)) &&
            !inputs[RouteGradInputs::logits].shard,
        "moe_route_grad: rows of other tokens");
    require_type(name(), "dweights", inputs[RouteGradInputs::dweights],
                 Type{DType::f32, inputs[RouteGradInputs::rows].shape});
    require_whole(name(), "offsets", inputs[RouteGradInputs::offsets], DType::i32, {Dim::of(experts + 1)});
    return {computed(inputs[RouteGradInputs::logits], inputs[RouteGradInputs::logits].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, RouteGradInputs::logits, false}}; }
};

// x[..., width], rows -> each token's copies y[..., top_k, width], row by row
class Dispatch final : public Op {
 public:
  std::string_view name() const override { return "moe_dispatch"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "rows"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 2);
    require_float(name(), "x", inputs[DispatchInputs::x], 2);
    HR_CHECK(inputs[DispatchInputs::x].shape ==
                     token_shape(name(), inputs[DispatchInputs::rows], inputs[DispatchInputs::x].shape.back()) &&
                 !inputs[DispatchInputs::x].shard,
             "moe_dispatch: rows of other tokens");
    return {{inputs[DispatchInputs::x].dtype,
             pair_shape(inputs[DispatchInputs::rows], inputs[DispatchInputs::x].shape.back())}};
  }

  std::vector<int> narrow_inputs(const Attrs&) const override { return {DispatchInputs::x}; }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(DispatchInputs::x)) return;
    context.contribute(DispatchInputs::x, context.build().call("moe_combine", {dy, context.input(DispatchInputs::rows)},
                                                               {}, Role::gradient));
  }
};

// y = [residual +] sum over a token's rows of z [* weights]. Inputs z, rows [, weights] [, residual], by attributes
// "weighted" and "residual"; y has the residual's dtype, or z's.
class Combine final : public Op {
 public:
  std::string_view name() const override { return "moe_combine"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"z", "rows"};
    if (attrs.integer("weighted") != 0) names.push_back("weights");
    if (attrs.integer("residual") != 0) names.push_back("residual");
    return names;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool weighted = flag(name(), attrs, "weighted"), residual = flag(name(), attrs, "residual");
    require_inputs(name(), inputs, 2 + size_t{weighted} + size_t{residual});
    const Type& z = inputs[CombineInputs::z];
    require_float(name(), "z", z, 3);
    Type y{residual ? inputs.back().dtype : z.dtype, token_shape(name(), inputs[CombineInputs::rows], z.shape.back())};
    HR_CHECK(z.shape == pair_shape(inputs[CombineInputs::rows], z.shape.back()) && !z.shard,
             "moe_combine: rows of other tokens");
    if (weighted)
      require_type(name(), "weights", inputs[CombineInputs::weights],
                   Type{DType::f32, inputs[CombineInputs::rows].shape});
    if (!residual) return {y};
    require_type(name(), "residual", inputs.back(), y);
    HR_CHECK(y.dtype == DType::f32 || y.dtype == z.dtype, "moe_combine: no {} residual beside {} rows",
             dtype_name(y.dtype), dtype_name(z.dtype));
    return {y};
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    if (attrs.integer("residual") == 0) return {};
    return {{0, inputs - 1, false}};
  }

  Work work(const OpCall& call) const override {
    Work work = Op::work(call);
    work.flops = 2.0 * static_cast<double>(element_count(call.inputs[CombineInputs::z].dims));
    return work;
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone) return;
    const bool weighted = context.attrs().integer("weighted") != 0;
    const int residual = context.attrs().integer("residual") != 0 ? CombineInputs::weights + int{weighted} : kNone;
    if (residual != kNone && context.wants(residual)) context.contribute(residual, dy);
    Builder& build = context.build();
    if (!weighted) {
      if (!context.wants(CombineInputs::z)) return;
      const DType dtype = build.type(context.input(CombineInputs::z)).dtype;
      const ValueId narrow =
          build.type(dy).dtype == dtype
              ? dy
              : build.call("cast", {dy}, {{"dtype", std::string(dtype_name(dtype))}}, Role::gradient);
      context.contribute(CombineInputs::z,
                         build.call("moe_dispatch", {narrow, context.input(CombineInputs::rows)}, {}, Role::gradient));
      return;
    }
    if (!context.wants(CombineInputs::z) && !context.wants(CombineInputs::weights)) return;
    const std::vector<ValueId> results =
        build.append("moe_combine_grad",
                     {dy, context.input(CombineInputs::z), context.input(CombineInputs::rows),
                      context.input(CombineInputs::weights)},
                     {}, Role::gradient);
    context.contribute(CombineInputs::z, results[CombineGradOutputs::dz]);
    context.contribute(CombineInputs::weights, results[CombineGradOutputs::dweights]);
  }
};

// dy, z, rows, weights -> dz = weights dy, dweights = z . dy
class CombineGrad final : public Op {
 public:
  std::string_view name() const override { return "moe_combine_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"dy", "z", "rows", "weights"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 4);
    const Type& z = inputs[CombineGradInputs::z];
    require_float(name(), "z", z, 3);
    require_float(name(), "dy", inputs[CombineGradInputs::dy], 2);
    HR_CHECK(
        inputs[CombineGradInputs::dy].shape == token_shape(name(), inputs[CombineGradInputs::rows], z.shape.back()) &&
            z.shape == pair_shape(inputs[CombineGradInputs::rows], z.shape.back()) && !z.shard &&
            !inputs[CombineGradInputs::dy].shard,
        "moe_combine_grad: rows of other tokens");
    require_type(name(), "weights", inputs[CombineGradInputs::weights],
                 Type{DType::f32, inputs[CombineGradInputs::rows].shape});
    return {{z.dtype, z.shape}, {DType::f32, inputs[CombineGradInputs::rows].shape}};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, CombineGradInputs::z, false}}; }

  Work work(const OpCall& call) const override {
    Work work = Op::work(call);
    work.flops = 3.0 * static_cast<double>(element_count(call.inputs[CombineGradInputs::z].dims));
    return work;
  }
};

}  // namespace

void register_moe_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Route>());
  registry.add(std::make_unique<RouteGrad>());
  registry.add(std::make_unique<Dispatch>());
  registry.add(std::make_unique<Combine>());
  registry.add(std::make_unique<CombineGrad>());
}

}  // namespace headroom
