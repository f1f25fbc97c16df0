#include "models/decoder.h"

#include "base/error.h"
#include "ir/builder.h"
#include "models/layers.h"
#include "ops/registry.h"
#include "ops/step_scalars.h"

namespace headroom {
namespace {

Type dense(DType dtype, std::initializer_list<int64_t> dims) {
  Type type{dtype, {}};
  for (int64_t dim : dims) type.shape.push_back(Dim::of(dim));
  return type;
}

}  // namespace

bool takes_pairs(const ModelSpec& spec) {
  return spec.objective == Objective::classification && spec.has("types") && spec.type_vocab > 1;
}

Graph build_training_forward(const ModelSpec& spec, int64_t batch_bound, int64_t seq_bound) {
  if (spec.objective == Objective::none)
    throw Error(ErrorKind::usage, fmt::format("{} has no head and so no loss", spec.architecture),
                "use the checkpoint of a class with a head, for masked language modelling or classification");
  Graph graph;
  graph.name = spec.family;
  const SymbolId batch = graph.add_symbol("batch", batch_bound);
  const SymbolId seq = graph.add_symbol("seq", seq_bound);
  Layers layers(spec, graph);
  LayerInputs in = layers.build_load(seq_bound);
  const RegionId region = add_program(graph, "forward");
  Builder build(graph, region, find_op);
  const ValueId hyper = build.persistent("hyper", dense(DType::f32, {kHyperCount}), Role::data);
  const bool hits = spec.objective != Objective::language;
  in.hyper = hyper;
  const ValueId losses = add_value(graph, dense(DType::f64, {hits ? 3 : 2}), Role::workspace);
  graph.region(region).params = {losses};
  const bool balanced = spec.experts.balance > 0;
  Attrs inputs{{"batch_symbol", int64_t{batch}}, {"seq_symbol", int64_t{seq}}};
  if (balanced) inputs.set("lengths", int64_t{1});
  const bool typed = takes_pairs(spec);
  if (typed) inputs.set("types", int64_t{1});
  const std::vector<ValueId> tokens = build.append("next_batch", {}, std::move(inputs), Role::data);
  if (typed) in.types = tokens[2];
  ValueId loads = kNone;
  if (balanced) {
    loads = build.call("moe_balance_begin", {}, {{"experts", spec.experts.count}}, Role::workspace);
    in.lengths = tokens[typed ? 3 : 2];
    in.loads = &loads;
  }
  const ValueId lengths = spec.causal ? kNone : build.call("sequence_lengths", {tokens[0]}, {{"pad", spec.pad_id}});
  const ValueId hidden =
      layers.hidden_states(build, tokens[0], in, [&](Builder& b, int64_t layer, ValueId q, ValueId k, ValueId v) {
        return layers.attention(b, layer, q, k, v, lengths, in);
      });
  const ValueId scale = build.call("loss_scale", {hyper}, {}, Role::workspace);
  ValueId before = losses;
  if (balanced)
    before = build.call("moe_balance_loss", {loads, tokens[1], losses, scale},
                        {{"coefficient", spec.experts.balance}, {"accumulate", "carried"}}, Role::workspace);
  Attrs loss{{"layout", "out_in"}, {"chunk", int64_t{0}}, {"accumulate", balanced ? "always" : "carried"}};
  if (spec.logit_cap > 0) loss.set("softcap", spec.logit_cap);
  if (spec.objective != Objective::language) loss.set("shift", int64_t{0}).set("hits", int64_t{1});
  if (layers.head_bias() != kNone) loss.set("bias", int64_t{1});
  const ValueId total =
      build.call("linear_cross_entropy",
                 {layers.head_input(build, hidden, in), layers.head(), tokens[1], before, scale, layers.head_bias()},
                 std::move(loss), Role::workspace);
  graph.region(region).results = {total};
  return graph;
}

std::string prefill_program(std::span<const int64_t> chunks, size_t which) {
  return which == 0 ? "prefill" : fmt::format("prefill@{}", chunks[which]);
}

Graph build_generation(const ModelSpec& spec, int64_t positions, std::span<const int64_t> chunks, DType cache) {
  if (spec.objective != Objective::language)
    throw Error(ErrorKind::usage, fmt::format("{} generates no text", spec.architecture),
                "use the checkpoint of a causal language model");
  Graph graph;
  graph.name = spec.family;
  Layers layers(spec, graph);
  LayerInputs in = layers.build_load(positions);
  Builder shared(graph, kNone, find_op);
  in.offset = shared.persistent("offset", dense(DType::i32, {1}), Role::data);
  const ValueId last = shared.persistent("last", dense(DType::i32, {1}), Role::data);
  std::vector<ValueId> keys, values;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const Type type = dense(cache, {1, positions, spec.kv_heads * spec.head_dim});
    keys.push_back(shared.persistent(fmt::format("keys.{}", layer), type, Role::kv_cache));
    values.push_back(shared.persistent(fmt::format("values.{}", layer), type, Role::kv_cache));
  }
  std::vector<std::pair<std::string, int64_t>> programs;
  for (size_t i = 0; i < chunks.size(); ++i) programs.emplace_back(prefill_program(chunks, i), chunks[i]);
  programs.emplace_back("decode", 1);
  for (const auto& [name, tokens] : programs) {
    const ValueId ids = shared.persistent(fmt::format("{}_ids", name), dense(DType::i32, {1, tokens}), Role::data);
    const RegionId region = add_program(graph, name);
    Builder build(graph, region, find_op);
    ValueId hidden =
        layers.hidden_states(build, ids, in, [&](Builder& b, int64_t layer, ValueId q, ValueId k, ValueId v) {
          const ValueId all_keys = b.call("kv_append", {k, keys[static_cast<size_t>(layer)], in.offset});
          const ValueId all_values = b.call("kv_append", {v, values[static_cast<size_t>(layer)], in.offset});
          return b.call("attention_cached", {q, all_keys, all_values, in.offset}, layers.attention_attrs(layer));
        });
    hidden = build.call("select_last", {hidden, last});
    ValueId logits =
        build.call("linear", {hidden, layers.head()},
                   {{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}, {"dtype", "f32"}});
    if (spec.logit_cap > 0) logits = build.call("softcap", {logits}, {{"cap", spec.logit_cap}});
    graph.region(region).results = {logits};
  }
  return graph;
}

}  // namespace headroom
