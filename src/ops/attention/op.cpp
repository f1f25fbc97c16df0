// Rules of attention, its gradient, and of the two ops that read and write a key-value cache.
//
// Attributes: heads, kv_heads, window (0: none), causal (1 when absent), scale (1 / sqrt(head dim) when absent),
// softcap (0 or absent: none; c: a scaled score s becomes c tanh(s / c)), dropout (0 when absent) and tensor: the share
// of the probabilities that training drops, and the place of these draws (score_dropout.h). Behind their own inputs
// attention and its gradient take, with dropout, the run's hyper-parameters (ops/step_scalars.h); then, where given,
// one of `lengths`, i32[batch]: how many keys of each batch row are not padding (at least one), and, where causal,
// `starts`, i32[batch, seq]: the position at which the segment of each token begins (RowMask in shape.h).
#include <memory>

#include "base/error.h"
#include "ir/vjp.h"
#include "ops/attention/cache_append.h"
#include "ops/attention/shape.h"
#include "ops/registry.h"
#include "ops/step_scalars.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using operand_rules::is_float;

void check_inputs(std::string_view op, std::span<const Type> inputs, size_t wanted, size_t optional = 0) {
  HR_CHECK(inputs.size() == wanted || inputs.size() == wanted + optional, "{} takes {} inputs, not {}", op, wanted,
           inputs.size());
  for (const Type& type : inputs) HR_CHECK(type.storage.dense(), "{} takes dense inputs", op);
}

// The last dimension of a [batch, rows, heads * dim] operand.
int64_t row_width(std::string_view op, const Type& type) {
  HR_CHECK(type.shape.size() == 3, "{}: operands have three dimensions, not {}", op, type.shape.size());
  HR_CHECK(is_float(type.dtype), "{}: operands are f32, bf16 or f16, not {}", op, dtype_name(type.dtype));
  HR_CHECK(type.shape[2].symbol < 0 && type.shape[2].constant > 0, "{}: the last dimension is a positive constant", op);
  return type.shape[2].constant;
}

// Checks heads, kv_heads, window, scale, and the widths of q, k and v against them.
void check_heads(std::string_view op, const Type& q, const Type& k, const Type& v, const Attrs& attrs) {
  const int64_t heads = attrs.integer("heads"), kv_heads = attrs.integer("kv_heads");
  HR_CHECK(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "{}: {} heads do not share {} kv heads", op, heads,
           kv_heads);
  const int64_t q_width = row_width(op, q), kv_width = row_width(op, k);
  HR_CHECK(q_width % heads == 0, "{}: a row of {} is not divided by {} heads", op, q_width, heads);
  HR_CHECK(kv_width == q_width / heads * kv_heads, "{}: k has rows of {}, not {} kv heads of {}", op, kv_width,
           kv_heads, q_width / heads);
  HR_CHECK(v.shape == k.shape && v.dtype == k.dtype, "{}: k and v have different types", op);
  HR_CHECK(q.shape[0] == k.shape[0], "{}: q and k have different batches", op);
  const int64_t window = attrs.integer("window");
  HR_CHECK(window >= 0, "{}: window {} is negative", op, window);
  HR_CHECK(window == 0 || attrs.integer("causal", 1) != 0, "{}: a window needs causal attention", op);
  HR_CHECK(attrs.real("scale", 1.0) > 0, "{}: the scale must be positive", op);
  HR_CHECK(attrs.real("softcap", 0.0) >= 0, "{}: softcap is {}", op, attrs.real("softcap", 0.0));
}

void check_self_attention(std::string_view op, std::span<const Type> inputs, const Attrs& attrs) {
  check_heads(op, inputs[AttentionInputs::q], inputs[AttentionInputs::k], inputs[AttentionInputs::v], attrs);
  HR_CHECK(inputs[AttentionInputs::q].shape[1] == inputs[AttentionInputs::k].shape[1],
           "{}: q and k have different lengths", op);
  HR_CHECK(inputs[AttentionInputs::q].dtype == inputs[AttentionInputs::k].dtype, "{}: q is {} and k is {}", op,
           dtype_name(inputs[AttentionInputs::q].dtype), dtype_name(inputs[AttentionInputs::k].dtype));
}

void check_mask(std::string_view op, const Type& mask, const Type& q, const Attrs& attrs) {
  const bool segments = mask.shape.size() == 2;
  HR_CHECK(mask.dtype == DType::i32, "{}: lengths and starts are i32", op);
  HR_CHECK(segments || mask.shape == std::vector<Dim>{q.shape[0]}, "{}: lengths are i32[batch]", op);
  HR_CHECK(!segments || (mask.shape == std::vector<Dim>{q.shape[0], q.shape[1]}), "{}: starts are i32[batch, seq]", op);
  HR_CHECK(!segments || attrs.integer("causal", 1) != 0, "{}: segments need causal attention", op);
}

// What follows the inputs that every call has.
void check_optional(std::string_view op, std::span<const Type> inputs, const Attrs& attrs, bool gradient) {
  const double dropout = attrs.real("dropout", 0);
  HR_CHECK(dropout >= 0 && dropout < 1, "{}: dropout is {}", op, dropout);
  const OptionalInputs places(attrs, inputs.size(), gradient);
  if (places.hyper > 0)
    HR_CHECK(inputs[places.hyper].dtype == DType::f32 &&
                 inputs[places.hyper].shape == std::vector<Dim>{Dim::of(kHyperCount)},
             "{}: dropout reads f32[{}]", op, kHyperCount);
  if (places.mask > 0) check_mask(op, inputs[places.mask], inputs[AttentionInputs::q], attrs);
}

void check_offset(std::string_view op, const Type& offset) {
  HR_CHECK(offset.dtype == DType::i32 && offset.shape == std::vector<Dim>{Dim::of(1)}, "{}: the offset is one i32", op);
}

void check_same(std::string_view op, std::string_view what, const Type& found, const Type& wanted) {
  HR_CHECK(found.shape == wanted.shape && found.dtype == wanted.dtype, "{}: {} does not have the type it needs", op,
           what);
}

Type lse_type(const Type& q, const Attrs& attrs) {
  return Type{DType::f32, {q.shape[0], Dim::of(attrs.integer("heads")), q.shape[1]}};
}

// What to draw whether a probability is dropped takes, as operations of a product of that type.
double draw_flops(const OpCall& call) {
  if (call.attrs.real("dropout", 0) == 0) return 0;
  return call.inputs[AttentionInputs::q].dtype == DType::bf16 ? 96 : 24;
}

// `products` matrix products over the visible pairs.
Work attention_work(const OpCall& call, Work moved, int products, int64_t first) {
  const AttentionShape shape = attention_shape(call);
  moved.flops = (2.0 * products * static_cast<double>(shape.dim) + draw_flops(call)) * visible_pairs(shape, first) *
                static_cast<double>(shape.batch * shape.heads);
  return moved;
}

// The names of a call's inputs behind `own`.
OperandNames with_optional(OperandNames own, const Attrs& attrs, size_t inputs) {
  if (attrs.real("dropout", 0) > 0) own.push_back("hyper");
  if (inputs > own.size()) own.push_back("mask");
  return own;
}

// (q, k, v, ...) -> (o, lse): o = softmax(scale q k^T) v per head, lse = log of the softmax's sum.
class Attention final : public Op {
 public:
  std::string_view name() const override { return "attention"; }
  OperandNames operands(const Attrs& attrs, size_t inputs) const override {
    return with_optional({"q", "k", "v"}, attrs, inputs);
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    check_inputs(name(), inputs, attrs.real("dropout", 0) > 0 ? 4 : 3, 1);
    check_self_attention(name(), inputs, attrs);
    check_optional(name(), inputs, attrs, false);
    return {Type{inputs[AttentionInputs::q].dtype, inputs[AttentionInputs::q].shape},
            lse_type(inputs[AttentionInputs::q], attrs)};
  }
  Work work(const OpCall& call) const override { return attention_work(call, Op::work(call), 2, 0); }
  CostClass cost_class() const override { return CostClass::attention; }
  bool take_segments(Attrs&) const override { return true; }
  void leave_training(std::vector<int32_t>& inputs, Attrs& attrs) const override {
    const size_t hyper = OptionalInputs(attrs, inputs.size(), false).hyper;
    if (hyper == 0) return;
    inputs.erase(inputs.begin() + static_cast<ptrdiff_t>(hyper));
    Attrs kept;
    for (const auto& [attr, value] : attrs.items())
      if (attr != "dropout" && attr != "tensor") kept.set(attr, value);
    attrs = std::move(kept);
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::attention; }

  void vjp(VjpContext& context) const override {
    HR_CHECK(context.cotangent(AttentionOutputs::lse) == kNone, "attention: lse is not differentiable");
    ValueId cotangent = context.cotangent(AttentionOutputs::o);
    if (cotangent == kNone ||
        !(context.wants(AttentionInputs::q) || context.wants(AttentionInputs::k) || context.wants(AttentionInputs::v)))
      return;
    Builder& build = context.build();
    const DType dtype = build.type(context.input(AttentionInputs::q)).dtype;
    if (build.type(cotangent).dtype != dtype)
      cotangent = build.call("cast", {cotangent}, {{"dtype", std::string(dtype_name(dtype))}}, Role::gradient);
    std::vector<ValueId> inputs{context.input(AttentionInputs::q),     context.input(AttentionInputs::k),
                                context.input(AttentionInputs::v),     context.output(AttentionOutputs::o),
                                context.output(AttentionOutputs::lse), cotangent};
    for (size_t i = AttentionInputs::v + 1; i < context.node().inputs.size(); ++i)
      inputs.push_back(context.input(static_cast<int>(i)));
    const std::vector<ValueId> gradients =
        build.append("attention_grad", std::move(inputs), context.attrs(), Role::gradient);
    for (int i = 0; i < 3; ++i)
      if (context.wants(i)) context.contribute(i, gradients[static_cast<size_t>(i)]);
  }
};

// (q, k, v, o, lse, do, ...) -> (dq, dk, dv)
class AttentionGrad final : public Op {
 public:
  std::string_view name() const override { return "attention_grad"; }
  OperandNames operands(const Attrs& attrs, size_t inputs) const override {
    return with_optional({"q", "k", "v", "o", "lse", "do"}, attrs, inputs);
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    check_inputs(name(), inputs, attrs.real("dropout", 0) > 0 ? 7 : 6, 1);
    check_self_attention(name(), inputs, attrs);
    check_optional(name(), inputs, attrs, true);
    check_same(name(), "o", inputs[AttentionGradInputs::o], inputs[AttentionGradInputs::q]);
    check_same(name(), "lse", inputs[AttentionGradInputs::lse], lse_type(inputs[AttentionGradInputs::q], attrs));
    check_same(name(), "do", inputs[AttentionGradInputs::cotangent], inputs[AttentionGradInputs::q]);
    const auto like = [](const Type& type) { return Type{type.dtype, type.shape}; };
    return {like(inputs[AttentionGradInputs::q]), like(inputs[AttentionGradInputs::k]),
            like(inputs[AttentionGradInputs::v])};
  }
  Work work(const OpCall& call) const override { return attention_work(call, Op::work(call), 5, 0); }
  CostClass cost_class() const override { return CostClass::attention_grad; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// (k, cache, offset) -> cache with the rows of k at `offset`; rows outside the cache are dropped.
class KvAppend final : public CacheAppend {
 public:
  std::string_view name() const override { return "kv_append"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"rows", "cache", "offset"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    check_inputs(name(), inputs, 3);
    const int64_t width = row_width(name(), inputs[CacheAppendInputs::rows]);
    HR_CHECK(row_width(name(), inputs[CacheAppendInputs::cache]) == width,
             "kv_append: the cache has rows of another width than {}", width);
    HR_CHECK(inputs[CacheAppendInputs::rows].shape[0] == inputs[CacheAppendInputs::cache].shape[0],
             "kv_append: k and the cache have different batches");
    check_offset(name(), inputs[CacheAppendInputs::places]);
    return {inputs[CacheAppendInputs::cache]};
  }
};

// (q, kcache, vcache, offset) -> o: query t sits at position offset + t and sees the cache up to its own row.
class AttentionCached final : public Op {
 public:
  std::string_view name() const override { return "attention_cached"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"q", "k_cache", "v_cache", "offset"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    check_inputs(name(), inputs, 4);
    check_heads(name(), inputs[CachedInputs::q], inputs[CachedInputs::keys], inputs[CachedInputs::values], attrs);
    HR_CHECK(attrs.integer("causal", 1) != 0, "attention_cached is causal");
    check_offset(name(), inputs[CachedInputs::offset]);
    return {Type{inputs[CachedInputs::q].dtype, inputs[CachedInputs::q].shape}};
  }
  // As if the chunk ended with the cache: the offset is known at run time only.
  Work work(const OpCall& call) const override {
    const int64_t first =
        std::max<int64_t>(0, call.inputs[CachedInputs::keys].dims[1] - call.inputs[CachedInputs::q].dims[1]);
    return attention_work(call, Op::work(call), 2, first);
  }
  CostClass cost_class() const override { return CostClass::attention; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_attention_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Attention>());
  registry.add(std::make_unique<AttentionGrad>());
  registry.add(std::make_unique<KvAppend>());
  registry.add(std::make_unique<AttentionCached>());
}

}  // namespace headroom
