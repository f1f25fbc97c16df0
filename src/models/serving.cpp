#include "models/serving.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "ir/builder.h"
#include "models/layers.h"
#include "ops/paged_attention/int8_heads.h"
#include "ops/registry.h"

namespace headroom {
namespace {

Type serving_type(DType dtype, std::initializer_list<int64_t> dims) {
  Type type{dtype, {}};
  for (const int64_t dim : dims) type.shape.push_back(Dim::of(dim));
  return type;
}

class ServingBuilder {
 public:
  ServingBuilder(const ModelSpec& spec, const ServingShape& shape, Graph& graph)
      : spec_(spec), shape_(shape), graph_(graph), layers_(spec, graph), shared_(graph, kNone, find_op) {
    load_ = layers_.build_load(shape.positions);
    tables_ = data("tables", {shape.sequences, shape.table_blocks()});
    for (int64_t layer = 0; layer < serving_pools(spec); ++layer) {
      keys_.push_back(pool("keys", layer));
      values_.push_back(pool("values", layer));
    }
  }

  void add_step(int64_t rows) {
    const auto of_step = [&](std::string_view what, std::initializer_list<int64_t> dims) {
      return data(step_data(what, rows), dims);
    };
    const ValueId ids = of_step("ids", {rows, 1}), positions = of_step("positions", {rows});
    LayerInputs in = load_;
    in.offset = of_step("angles", {rows});
    const ValueId slots = of_step("slots", {rows}), owners = of_step("owners", {rows});
    const ValueId wanted = of_step("wanted", {std::min(rows, shape_.logits)});
    std::vector<ValueId> all_keys = keys_, all_values = values_;  // as the last layer that used them left them
    const RegionId region = add_program(graph_, step_program(rows));
    Builder build(graph_, region, find_op);
    const ValueId hidden =
        layers_.hidden_states(build, ids, in, [&](Builder& b, int64_t layer, ValueId q, ValueId k, ValueId v) {
          const size_t at = static_cast<size_t>(layer) % all_keys.size();
          const ValueId keys = all_keys[at] = b.call("kv_append_paged", {k, all_keys[at], slots});
          const ValueId values = all_values[at] = b.call("kv_append_paged", {v, all_values[at], slots});
          Attrs attrs = layers_.attention_attrs(layer);
          attrs.set("block_tokens", shape_.block_tokens);
          attrs.set("causal", int64_t{1});  // for an encoder too: all its rows have the last position
          return b.call("attention_paged", {q, keys, values, tables_, owners, positions}, std::move(attrs));
        });
    const ValueId selected = build.call("select_rows", {hidden, wanted});
    graph_.region(region).results = {selected};
    if (!is_served_encoder(spec_)) graph_.region(region).results = {logits(build, selected), selected};
  }

 private:
  ValueId data(std::string name, std::initializer_list<int64_t> dims) {
    return shared_.persistent(std::move(name), serving_type(DType::i32, dims), Role::data);
  }

  ValueId pool(std::string_view what, int64_t layer) {
    const Type type =
        serving_type(shape_.cache, {1, shape_.blocks * shape_.block_tokens, serving_cache_width(spec_, shape_.cache)});
    return shared_.persistent(fmt::format("{}.{}", what, layer), type, Role::kv_cache);
  }

  ValueId logits(Builder& build, ValueId hidden) const {
    const ValueId out =
        build.call("linear", {hidden, layers_.head()},
                   {{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}, {"dtype", "f32"}});
    return spec_.logit_cap > 0 ? build.call("softcap", {out}, {{"cap", spec_.logit_cap}}) : out;
  }

  const ModelSpec& spec_;
  const ServingShape& shape_;
  Graph& graph_;
  Layers layers_;
  Builder shared_;
  LayerInputs load_;
  ValueId tables_ = kNone;
  std::vector<ValueId> keys_, values_;
};

}  // namespace

ModelSpec without_head(ModelSpec spec) {
  for (const char* role : {"pooler", "transform", "transform_norm", "head"})
    for (const char* part : {"", "_bias"}) {
      const std::string full = std::string(role) + part;
      if (!spec.has(full)) continue;
      const std::string name = spec.name(full);
      spec.ignored_suffixes.push_back(name);
      for (const std::string& prefix : spec.optional_prefixes)
        if (name.starts_with(prefix)) spec.ignored_suffixes.push_back(name.substr(prefix.size()));
      spec.names.erase(full);
    }
  for (const char* others : {"cls.", "lm_head.", "classifier."}) spec.ignored_prefixes.emplace_back(others);
  spec.objective = Objective::none;
  return spec;
}

int64_t serving_cache_width(const ModelSpec& spec, DType cache) {
  return spec.kv_heads * pool_head_width(cache, spec.head_dim);
}

int64_t serving_pools(const ModelSpec& spec) { return is_served_encoder(spec) ? 1 : spec.layers; }

std::vector<int64_t> step_sizes(int64_t rows) {
  std::vector<int64_t> sizes{rows};
  for (int64_t size = int64_t{1} << 40; size >= 1; size /= 2) {
    if (size < rows) sizes.push_back(size);
    if (const int64_t between = size / 4 * 3; between < rows && between >= 12) sizes.push_back(between);
  }
  return sizes;
}

std::string step_program(int64_t rows) { return fmt::format("step_{}", rows); }
int64_t rows_of_step(std::string_view program) {
  constexpr std::string_view kStep = "step_";
  int64_t rows = 0;
  if (program.starts_with(kStep)) std::from_chars(program.data() + kStep.size(), program.data() + program.size(), rows);
  return rows;
}

std::string step_data(std::string_view what, int64_t rows) { return fmt::format("{}.{}", what, rows); }

Graph build_serving(const ModelSpec& spec, const ServingShape& shape) {
  if (spec.objective != Objective::language && !is_served_encoder(spec))
    throw Error(ErrorKind::usage, fmt::format("{} generates no text", spec.architecture),
                "use the checkpoint of a causal language model");
  Graph graph;
  graph.name = spec.family;
  ServingBuilder builder(spec, shape, graph);
  for (const int64_t rows : step_sizes(shape.rows)) builder.add_step(rows);
  return graph;
}

}  // namespace headroom
