#include "models/decoder.h"

#include "base/error.h"
#include "ir/builder.h"
#include "ops/registry.h"

namespace headroom {
namespace {

Type dense(DType dtype, std::initializer_list<int64_t> dims) {
  Type type{dtype, {}};
  for (int64_t dim : dims) type.shape.push_back(Dim::of(dim));
  return type;
}

Type weight_type(const WeightInfo& weight) {
  Type type{DType::f32, {}};
  for (int64_t dim : weight.shape) type.shape.push_back(Dim::of(dim));
  return type;
}

// What the layers of one program share.
struct DecoderInputs {
  ValueId rope_table = kNone;
  ValueId offset = kNone;  // i32[1]: rows of the cache already filled; kNone when training
};

class Decoder {
 public:
  Decoder(const ModelSpec& spec, Graph& graph) : spec_(spec), graph_(graph) {
    Builder build(graph, kNone, find_op);
    for (const WeightInfo& weight : model_weights(spec))
      weights_[weight.name] = build.persistent(weight.name, weight_type(weight), Role::parameter);
  }

  // The program that fills what is computed rather than read.
  ValueId build_load(int64_t positions) {
    Builder build(graph_, add_program(graph_, "load"), find_op);
    build.set_stage(Stage::transfer);
    if (spec_.positions != PositionKind::rotary) return kNone;
    const ValueId table =
        build.persistent("rope_table", dense(DType::f32, {positions, spec_.head_dim}), Role::constant);
    constexpr const char* kinds[] = {"default", "linear", "llama3"};
    const RopeScaling& scaling = spec_.rope_scaling;
    build.call("rope_table", {table},
               {{"positions", positions},
                {"head_dim", spec_.head_dim},
                {"theta", spec_.rope_theta},
                {"scaling", kinds[static_cast<size_t>(scaling.type)]},
                {"factor", scaling.factor},
                {"low_freq_factor", scaling.low_freq_factor},
                {"high_freq_factor", scaling.high_freq_factor},
                {"original_positions", scaling.original_max_position}});
    return table;
  }

  // Token ids -> final hidden states. `attend` computes attention from q, k and v (already rotated).
  template <typename Attend>
  ValueId hidden_states(Builder& build, ValueId ids, const DecoderInputs& in, const Attend& attend) const {
    ValueId x = build.call("embedding", {ids, weight("embed")});
    if (spec_.has("positions")) x = build.call("position_embedding", {x, weight("positions"), in.offset});
    for (int64_t layer = 0; layer < spec_.layers; ++layer) {
      build.set_block(static_cast<int32_t>(layer));
      x = attention_half(build, x, layer, in, attend);
      x = mlp_half(build, x, layer);
    }
    build.set_block(kNone);
    return norm(build, x, "final_norm", 0);
  }

  ValueId head() const { return weight(spec_.tied ? "embed" : "head"); }
  int64_t window(int64_t layer) const { return spec_.windows[static_cast<size_t>(layer)]; }

  Attrs attention_attrs(int64_t layer) const {
    return {{"heads", spec_.heads}, {"kv_heads", spec_.kv_heads}, {"window", window(layer)}};
  }

 private:
  ValueId weight(std::string_view role, int64_t layer = 0) const { return weights_.at(spec_.name(role, layer)); }
  ValueId bias(std::string_view role, int64_t layer) const {
    const std::string name = std::string(role) + "_bias";
    return spec_.has(name) ? weight(name, layer) : kNone;
  }

  ValueId norm(Builder& build, ValueId x, std::string_view role, int64_t layer) const {
    const Attrs attrs{{"eps", spec_.norm_epsilon}};
    if (spec_.norm == NormKind::rms) return build.call("rms_norm", {x, weight(role, layer)}, attrs);
    return build.call("layer_norm", {x, weight(role, layer), bias(role, layer)}, attrs);
  }

  ValueId linear(Builder& build, ValueId x, std::string_view role, int64_t layer, ValueId residual = kNone) const {
    const ValueId b = bias(role, layer);
    return build.call(
        "linear", {x, weight(role, layer), b, residual},
        {{"layout", spec_.layout}, {"bias", int64_t{b != kNone}}, {"residual", int64_t{residual != kNone}}});
  }

  ValueId rotate(Builder& build, ValueId x, int64_t heads, const DecoderInputs& in) const {
    if (in.rope_table == kNone) return x;
    return build.call("rotary", {x, in.rope_table, in.offset},
                      {{"heads", heads}, {"inverse", int64_t{0}}, {"offset", int64_t{in.offset != kNone}}});
  }

  template <typename Attend>
  ValueId attention_half(Builder& build, ValueId x, int64_t layer, const DecoderInputs& in,
                         const Attend& attend) const {
    const ValueId normed = norm(build, x, "attn_norm", layer);
    ValueId q, k, v;
    if (spec_.has("qkv")) {
      const int64_t width = spec_.heads * spec_.head_dim, kv_width = spec_.kv_heads * spec_.head_dim;
      const std::vector<ValueId> parts = build.append("split", {linear(build, normed, "qkv", layer)},
                                                      {{"sizes", fmt::format("{},{},{}", width, kv_width, kv_width)}});
      q = parts[0], k = parts[1], v = parts[2];
    } else {
      q = linear(build, normed, "q", layer);
      k = linear(build, normed, "k", layer);
      v = linear(build, normed, "v", layer);
    }
    q = rotate(build, q, spec_.heads, in);
    k = rotate(build, k, spec_.kv_heads, in);
    return linear(build, attend(build, layer, q, k, v), "o", layer, x);
  }

  ValueId mlp_half(Builder& build, ValueId x, int64_t layer) const {
    const ValueId normed = norm(build, x, "ffn_norm", layer);
    const ValueId up = linear(build, normed, "up", layer);
    ValueId inner;
    if (spec_.mlp == MlpKind::swiglu) {
      const ValueId gate = linear(build, normed, "gate", layer);
      inner = build.call("swiglu", {gate, up});
    } else {
      inner = build.call("gelu", {up}, {{"approximate", spec_.gelu}});
    }
    return linear(build, inner, "down", layer, x);
  }

  const ModelSpec& spec_;
  Graph& graph_;
  std::map<std::string, ValueId> weights_;
};

}  // namespace

Graph build_training_forward(const ModelSpec& spec, int64_t batch_bound, int64_t seq_bound) {
  Graph graph;
  graph.name = spec.family;
  const SymbolId batch = graph.add_symbol("batch", batch_bound);
  const SymbolId seq = graph.add_symbol("seq", seq_bound);
  Decoder decoder(spec, graph);
  DecoderInputs in;
  in.rope_table = decoder.build_load(seq_bound);
  const RegionId region = add_program(graph, "forward");
  Builder build(graph, region, find_op);
  const ValueId hyper = build.persistent("hyper", dense(DType::f32, {16}), Role::data);
  const ValueId losses = add_value(graph, dense(DType::f64, {2}), Role::workspace);
  graph.region(region).params = {losses};
  const std::vector<ValueId> tokens =
      build.append("next_batch", {}, {{"batch_symbol", int64_t{batch}}, {"seq_symbol", int64_t{seq}}}, Role::data);
  const ValueId hidden =
      decoder.hidden_states(build, tokens[0], in, [&](Builder& b, int64_t layer, ValueId q, ValueId k, ValueId v) {
        return b.append("attention", {q, k, v}, decoder.attention_attrs(layer))[0];
      });
  const ValueId scale = build.call("loss_scale", {hyper}, {}, Role::workspace);
  const ValueId total =
      build.call("linear_cross_entropy", {hidden, decoder.head(), tokens[1], losses, scale},
                 {{"layout", "out_in"}, {"chunk", int64_t{0}}, {"accumulate", "carried"}}, Role::workspace);
  graph.region(region).results = {total};
  return graph;
}

Graph build_generation(const ModelSpec& spec, int64_t positions, int64_t chunk, DType cache) {
  Graph graph;
  graph.name = spec.family;
  Decoder decoder(spec, graph);
  DecoderInputs in;
  in.rope_table = decoder.build_load(positions);
  Builder shared(graph, kNone, find_op);
  in.offset = shared.persistent("offset", dense(DType::i32, {1}), Role::data);
  const ValueId last = shared.persistent("last", dense(DType::i32, {1}), Role::data);
  std::vector<ValueId> keys, values;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const Type type = dense(cache, {1, positions, spec.kv_heads * spec.head_dim});
    keys.push_back(shared.persistent(fmt::format("keys.{}", layer), type, Role::kv_cache));
    values.push_back(shared.persistent(fmt::format("values.{}", layer), type, Role::kv_cache));
  }
  for (const auto& [name, tokens] : {std::pair<const char*, int64_t>{"prefill", chunk}, {"decode", 1}}) {
    const ValueId ids = shared.persistent(fmt::format("{}_ids", name), dense(DType::i32, {1, tokens}), Role::data);
    const RegionId region = add_program(graph, name);
    Builder build(graph, region, find_op);
    ValueId hidden =
        decoder.hidden_states(build, ids, in, [&](Builder& b, int64_t layer, ValueId q, ValueId k, ValueId v) {
          const ValueId all_keys = b.call("kv_append", {k, keys[static_cast<size_t>(layer)], in.offset});
          const ValueId all_values = b.call("kv_append", {v, values[static_cast<size_t>(layer)], in.offset});
          return b.call("attention_cached", {q, all_keys, all_values, in.offset}, decoder.attention_attrs(layer));
        });
    hidden = build.call("select_last", {hidden, last});
    graph.region(region).results = {
        build.call("linear", {hidden, decoder.head()},
                   {{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}, {"dtype", "f32"}})};
  }
  return graph;
}

}  // namespace headroom
