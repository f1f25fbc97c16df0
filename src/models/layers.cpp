#include "models/layers.h"

#include "base/counter_random.h"
#include "base/error.h"
#include "ops/registry.h"

namespace headroom {
namespace {

Type dense_f32(const std::vector<int64_t>& dims) {
  Type type{DType::f32, {}};
  for (int64_t dim : dims) type.shape.push_back(Dim::of(dim));
  return type;
}

// Attribute "tensor" of the dropout at a place, which keys its random draws.
int64_t place_of_draws(std::string_view place, int64_t layer) {
  return static_cast<int64_t>(hash_text(fmt::format("dropout.{}.{}", place, layer)) >> 1);
}

// Attributes of the table for `positions` positions. LongRoPE has one set of factors for sequences within the original
// context and one for longer sequences; a run uses the set for its longest sequence.
Attrs table_attrs(int64_t positions, int64_t width, double theta, const RopeScaling& scaling) {
  constexpr const char* kinds[] = {"default", "linear", "llama3", "longrope"};
  Attrs attrs{{"positions", positions},
              {"head_dim", width},
              {"theta", theta},
              {"scaling", kinds[static_cast<size_t>(scaling.type)]},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_positions", scaling.original_max_position}};
  if (scaling.type == RopeType::longrope) {
    const std::vector<double>& factors = scaling.is_long(positions) ? scaling.long_factors : scaling.short_factors;
    attrs.set("factors", fmt::format("{}", fmt::join(factors, ",")));
    attrs.set("amplitude", scaling.amplitude);
  }
  return attrs;
}

}  // namespace

Layers::Layers(const ModelSpec& spec, Graph& graph) : spec_(spec), graph_(graph) {
  Builder build(graph, kNone, find_op);
  for (const WeightInfo& weight : model_weights(spec))
    weights_[weight.name] = build.persistent(weight.name, dense_f32(weight.shape), Role::parameter);
}

LayerInputs Layers::build_load(int64_t positions) {
  Builder build(graph_, add_program(graph_, "load"), find_op);
  build.set_stage(Stage::transfer);
  LayerInputs in;
  if (spec_.positions != PositionKind::rotary) return in;
  in.rope_table = rope_table(build, "rope_table", positions, spec_.rope_theta, spec_.rope_scaling);
  if (spec_.local_rope_theta > 0)
    in.local_rope_table = rope_table(build, "local_rope_table", positions, spec_.local_rope_theta, {});
  return in;
}

ValueId Layers::rope_table(Builder& build, const char* name, int64_t positions, double theta,
                           const RopeScaling& scaling) {
  const ValueId table = build.persistent(name, dense_f32({positions, spec_.rotary_dim}), Role::constant);
  build.call("rope_table", {table}, table_attrs(positions, spec_.rotary_dim, theta, scaling));
  return table;
}

ValueId Layers::embed(Builder& build, ValueId ids, const LayerInputs& in) const {
  Attrs lookup;
  if (spec_.padding_row >= 0) lookup.set("padding", spec_.padding_row);
  ValueId x = build.call("embedding", {ids, weight("embed")}, std::move(lookup));
  if (spec_.embedding_scale != 1) x = build.call("scale", {x}, {{"factor", spec_.embedding_scale}});
  if (spec_.has("types")) {
    const ValueId types = in.types == kNone ? build.call("zero_ids", {ids}) : in.types;
    x = build.call("add", {x, build.call("embedding", {types, weight("types")})});
  }
  if (spec_.has("positions")) {
    Attrs attrs;
    ValueId shift = in.offset;
    if (spec_.first_position > 0) {
      attrs.set("first", spec_.first_position);
      if (shift == kNone) shift = build.call("padding_starts", {ids}, {{"pad", spec_.pad_id}});
    }
    x = build.call("position_embedding", {x, weight("positions"), shift}, std::move(attrs));
  }
  if (spec_.has("embed_norm")) x = norm(build, x, "embed_norm", 0, true);
  return dropout(build, x, spec_.dropout.embedding, "embed", 0, in);
}

ValueId Layers::hidden_states(Builder& build, ValueId ids, const LayerInputs& in, const Attend& attend) const {
  ValueId x = embed(build, ids, in);
  for (int64_t layer = 0; layer < spec_.layers; ++layer) {
    build.set_block(static_cast<int32_t>(layer));
    const ValueId attended = attention_half(build, x, layer, in, attend);
    x = mlp_half(build, spec_.parallel_residual ? x : attended, layer, attended, in);
  }
  build.set_block(kNone);
  return norm_before(build, x, "final_norm", 0);
}

ValueId Layers::head_input(Builder& build, ValueId hidden, const LayerInputs& in) const {
  if (spec_.has("pooler")) {
    if (spec_.dropout.head_input) hidden = dropout(build, hidden, spec_.dropout.head, "pooler", 0, in);
    const ValueId pooled = build.call("softcap", {linear(build, hidden, "pooler", 0)}, {{"cap", 1.0}});  // tanh
    return dropout(build, pooled, spec_.dropout.head, "head", 0, in);
  }
  if (!spec_.has("transform")) return hidden;
  const bool tanh = spec_.activation == "gelu_tanh";
  const ValueId x =
      build.call("gelu", {linear(build, hidden, "transform", 0)}, {{"approximate", tanh ? "tanh" : "none"}});
  return norm(build, x, "transform_norm", 0);
}

Attrs Layers::attention_attrs(int64_t layer) const {
  Attrs attrs{{"heads", spec_.heads}, {"kv_heads", spec_.kv_heads}, {"window", window(layer)}};
  if (spec_.attention_scale > 0) attrs.set("scale", spec_.attention_scale);
  if (spec_.score_cap > 0) attrs.set("softcap", spec_.score_cap);
  if (!spec_.causal) attrs.set("causal", int64_t{0});
  return attrs;
}

ValueId Layers::attention(Builder& build, int64_t layer, ValueId q, ValueId k, ValueId v, ValueId lengths,
                          const LayerInputs& in) const {
  Attrs attrs = attention_attrs(layer);
  const bool drops = spec_.dropout.attention > 0 && in.hyper != kNone;
  if (drops) attrs.set("dropout", spec_.dropout.attention).set("tensor", place_of_draws("scores", layer));
  return build.append("attention", {q, k, v, drops ? in.hyper : kNone, lengths}, std::move(attrs))[0];
}

ValueId Layers::bias(std::string_view role, int64_t layer) const {
  const std::string name = std::string(role) + "_bias";
  return spec_.has(name) ? weight(name, layer) : kNone;
}

ValueId Layers::norm(Builder& build, ValueId x, std::string_view role, int64_t layer, bool joins_stream) const {
  Attrs attrs{{"eps", spec_.norm_epsilon}};
  if (joins_stream) attrs.set("stream", int64_t{1});
  if (spec_.norm == NormKind::layer)
    return build.call("layer_norm", {x, weight(role, layer), bias(role, layer)}, std::move(attrs));
  if (spec_.unit_norm) attrs.set("unit", int64_t{1});
  return build.call("rms_norm", {x, weight(role, layer)}, std::move(attrs));
}

ValueId Layers::norm_before(Builder& build, ValueId x, std::string_view role, int64_t layer) const {
  return spec_.has(role) ? norm(build, x, role, layer) : x;
}

ValueId Layers::linear(Builder& build, ValueId x, std::string_view role, int64_t layer, ValueId residual) const {
  const ValueId b = bias(role, layer);
  return build.call(
      "linear", {x, weight(role, layer), b, residual},
      {{"layout", spec_.layout}, {"bias", int64_t{b != kNone}}, {"residual", int64_t{residual != kNone}}});
}

// x with dropout in training.
ValueId Layers::dropout(Builder& build, ValueId x, double rate, std::string_view place, int64_t layer,
                        const LayerInputs& in, bool joins_stream) const {
  if (rate == 0 || in.hyper == kNone) return x;
  Attrs attrs{{"rate", rate}, {"tensor", place_of_draws(place, layer)}};
  if (joins_stream) attrs.set("stream", int64_t{1});
  return build.call("dropout", {x, in.hyper}, std::move(attrs));
}

// residual + linear(x), with the norms that the family has before and after the sum of that half ("attn" or "ffn").
ValueId Layers::join(Builder& build, ValueId x, std::string_view role, std::string_view half, int64_t layer,
                     ValueId residual, const LayerInputs& in) const {
  const std::string post = fmt::format("{}_post_norm", half), sum = fmt::format("{}_sum_norm", half);
  if (spec_.has(post))
    x = build.call("add", {residual, norm(build, linear(build, x, role, layer), post, layer, true)});
  else if (spec_.dropout.residual > 0 && in.hyper != kNone)
    x = build.call("add", {residual, dropout(build, linear(build, x, role, layer), spec_.dropout.residual, half, layer,
                                             in, true)});
  else
    x = linear(build, x, role, layer, residual);
  return spec_.has(sum) ? norm(build, x, sum, layer, true) : x;
}

// Queries or keys, normalised and rotated as the family does.
ValueId Layers::position(Builder& build, ValueId x, int64_t heads, std::string_view norm_role, int64_t layer,
                         const LayerInputs& in) const {
  x = norm_before(build, x, norm_role, layer);
  const bool local = in.local_rope_table != kNone && window(layer) > 0;
  const ValueId table = local ? in.local_rope_table : in.rope_table;
  if (table == kNone) return x;
  return build.call("rotary", {x, table, in.offset},
                    {{"heads", heads}, {"inverse", int64_t{0}}, {"offset", int64_t{in.offset != kNone}}});
}

ValueId Layers::attention_half(Builder& build, ValueId x, int64_t layer, const LayerInputs& in,
                               const Attend& attend) const {
  const ValueId normed = norm_before(build, x, "attn_norm", layer);
  ValueId q, k, v;
  if (spec_.has("qkv")) {
    const int64_t groups = spec_.qkv_by_head ? spec_.heads : 1;
    const int64_t width = spec_.heads * spec_.head_dim / groups, kv_width = spec_.kv_heads * spec_.head_dim / groups;
    Attrs attrs{{"sizes", fmt::format("{},{},{}", width, kv_width, kv_width)}};
    if (groups > 1) attrs.set("groups", groups);
    const std::vector<ValueId> parts = build.append("split", {linear(build, normed, "qkv", layer)}, std::move(attrs));
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = linear(build, normed, "q", layer);
    k = linear(build, normed, "k", layer);
    v = linear(build, normed, "v", layer);
  }
  q = position(build, q, spec_.heads, "q_norm", layer, in);
  k = position(build, k, spec_.kv_heads, "k_norm", layer, in);
  return join(build, attend(build, layer, q, k, v), "o", "attn", layer, x, in);
}

ValueId Layers::gated_unit(Builder& build, ValueId gate, ValueId up) const {
  Attrs attrs;
  if (spec_.activation != "silu") attrs.set("activation", spec_.activation);
  return build.call("swiglu", {gate, up}, std::move(attrs));
}

// residual + the weighted sum of the outputs of each token's experts. The router's product states its dtype: the logits
// are f32 in every precision.
ValueId Layers::experts_half(Builder& build, ValueId x, int64_t layer, ValueId residual, const LayerInputs& in) const {
  const ValueId normed = norm_before(build, x, "ffn_norm", layer);
  const ValueId logits =
      build.call("linear", {normed, weight("router", layer)},
                 {{"layout", spec_.layout}, {"bias", int64_t{0}}, {"residual", int64_t{0}}, {"dtype", "f32"}});
  const std::vector<ValueId> routed = build.append(
      "moe_route", {logits}, {{"top_k", spec_.experts.chosen}, {"normalised", int64_t{spec_.experts.normalised}}});
  const ValueId weights = routed[0], rows = routed[1], offsets = routed[2];
  if (in.loads) *in.loads = build.call("moe_balance", {logits, rows, offsets, in.lengths, *in.loads});
  const ValueId copies = build.call("moe_dispatch", {normed, rows});
  const ValueId up = build.call("expert_linear", {copies, weight("expert_up", layer), offsets});
  const ValueId gate = build.call("expert_linear", {copies, weight("expert_gate", layer), offsets});
  const ValueId inner = gated_unit(build, gate, up);
  const ValueId results = build.call("expert_linear", {inner, weight("expert_down", layer), offsets});
  return build.call("moe_combine", {results, rows, weights, residual},
                    {{"weighted", int64_t{1}}, {"residual", int64_t{1}}});
}

ValueId Layers::mlp_half(Builder& build, ValueId x, int64_t layer, ValueId residual, const LayerInputs& in) const {
  if (spec_.has_experts(layer)) return experts_half(build, x, layer, residual, in);
  const ValueId normed = norm_before(build, x, "ffn_norm", layer);
  ValueId inner;
  if (spec_.mlp == MlpKind::plain) {
    const bool tanh = spec_.activation == "gelu_tanh";
    inner = build.call("gelu", {linear(build, normed, "up", layer)}, {{"approximate", tanh ? "tanh" : "none"}});
  } else {
    ValueId gate, up;
    if (spec_.has("gate_up")) {
      const std::vector<ValueId> parts =
          build.append("split", {linear(build, normed, "gate_up", layer)},
                       {{"sizes", fmt::format("{},{}", spec_.intermediate, spec_.intermediate)}});
      gate = parts[0], up = parts[1];
    } else {
      up = linear(build, normed, "up", layer);
      gate = linear(build, normed, "gate", layer);
    }
    inner = gated_unit(build, gate, up);
  }
  return join(build, inner, "down", "ffn", layer, residual, in);
}

}  // namespace headroom
