#include "passes/shard.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "ops/registry.h"

namespace headroom {
namespace {

// A node's position before anything is inserted.
struct Place {
  RegionId region = kNone;
  int32_t position = 0;
};

// An in-place step of an accumulator: input and output of `node` that share its storage.
struct Writer {
  NodeId node = kNone;
  size_t input = 0;
  size_t output = 0;
};

bool is_update(const Node& node) { return node.op->kind() == OpKind::update; }
bool is_cast(const Node& node) { return node.op->kind() == OpKind::cast; }

// Values keep their ids through the rewrite: if a value must come out of a collective, its old producer gets a fresh
// output and the last inserted node takes over the id. Readers need no change.
class Sharder {
 public:
  Sharder(Graph& graph, int32_t parts) : graph_(graph), spec_{0, parts}, insertions_(graph.regions.size()) {}

  void run() {
    survey();
    slice_matrices();
    for (RegionId region = 0; region < static_cast<RegionId>(graph_.regions.size()); ++region) gather_reads(region);
    for (NodeId update : updates_) sum_gradient(update);
    sum_norm();
    for (const Program& program : graph_.programs)
      for (ValueId result : graph_.region(program.region).results) all_reduce(result);
    for (RegionId region = 0; region < static_cast<RegionId>(graph_.regions.size()); ++region)
      insert_all(graph_, region, std::move(insertions_[static_cast<size_t>(region)]));
  }

 private:
  void survey() {
    for (RegionId region = 0; region < static_cast<RegionId>(graph_.regions.size()); ++region) {
      const std::vector<NodeId>& nodes = graph_.region(region).nodes;
      for (size_t position = 0; position < nodes.size(); ++position) {
        const NodeId id = nodes[position];
        const Node& node = graph_.node(id);
        places_[id] = {region, static_cast<int32_t>(position)};
        for (ValueId output : node.outputs) producers_[output] = id;
        if (is_update(node)) updates_.push_back(id);
        if (node.op->kind() == OpKind::squared_norm) norms_.push_back(id);
        for (const Alias& alias : node.op->aliases(node.attrs, static_cast<int>(node.inputs.size())))
          if (alias.must && !is_loop(node))
            writers_[node.inputs[static_cast<size_t>(alias.input)]] = {id, static_cast<size_t>(alias.input),
                                                                       static_cast<size_t>(alias.output)};
      }
    }
  }

  bool is_slice(ValueId id) const { return graph_.value(id).type.shard.has_value(); }
  void make_slice(ValueId id) { graph_.value(id).type.shard = spec_; }

  // Weights, their states and their narrow forms become slices.
  void slice_matrices() {
    for (Value& value : graph_.values) {
      if (!value.persistent || value.role != Role::parameter || value.type.shape.size() < 2) continue;
      HR_CHECK(!value.type.shard, "{} is sharded already", value.name);
      value.type.shard = spec_;
    }
    for (NodeId update : updates_) {
      const std::vector<ValueId> inputs = graph_.node(update).inputs;
      if (!is_slice(operand(graph_.node(update), "weight"))) continue;
      for (ValueId id : inputs)
        if (graph_.value(id).persistent && graph_.value(id).role == Role::optimizer) make_slice(id);
    }
    for (const auto& [id, place] : places_)
      if (is_cast(graph_.node(id)) && is_slice(source_of(graph_.node(id)))) make_slice(result_of(graph_.node(id)));
  }

  // Whether the input is rounded before it is gathered: f32 that the node would round itself.
  bool gathers_narrow(const Node& node, size_t input) const {
    const std::vector<int> rounded = node.op->rounded_inputs();
    return std::find(rounded.begin(), rounded.end(), static_cast<int>(input)) != rounded.end() &&
           graph_.value(node.inputs[input]).type.dtype != graph_.value(first_factor(node)).type.dtype;
  }

  // Gathers the whole matrix of a slice, in dtype `dtype`, for a node at `place`.
  ValueId gather(ValueId slice, DType dtype, Place place, int32_t block) {
    if (graph_.value(slice).type.dtype != dtype) {
      const Attrs attrs{{"dtype", std::string(dtype_name(dtype))}};
      slice = result_of(graph_.node(insert("cast", {slice}, attrs, place, block, Stage::transfer, Role::workspace)));
      make_slice(slice);
    }
    return result_of(graph_.node(start_and_wait("all_gather_start", slicing(), slice, place, block, Role::workspace)));
  }

  // Nodes of one block and one direction that follow each other share the gathered matrix.
  void gather_reads(RegionId region) {
    std::map<std::pair<ValueId, DType>, ValueId> whole;
    std::optional<std::pair<int32_t, bool>> run;
    for (NodeId id : std::vector<NodeId>(graph_.region(region).nodes)) {
      const Node node = graph_.node(id);
      if (is_update(node) || is_cast(node)) continue;
      const std::pair<int32_t, bool> here{node.block, node.stage == Stage::forward};
      if (run != here) whole.clear(), run = here;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!is_slice(node.inputs[i])) continue;
        const DType dtype = graph_.value(node.inputs[gathers_narrow(node, i) ? 0 : i]).type.dtype;
        const auto [at, fresh] = whole.try_emplace({node.inputs[i], dtype}, kNone);
        if (fresh) at->second = gather(node.inputs[i], dtype, places_.at(id), node.block);
        graph_.node(id).inputs[i] = at->second;
      }
    }
  }

  void sum_gradient(NodeId update) {
    const ValueId gradient = operand(graph_.node(update), "gradient");
    if (!is_slice(operand(graph_.node(update), "weight"))) return all_reduce(gradient);
    ValueId accumulator = slice_storage(gradient);
    while (writers_.contains(accumulator)) accumulator = scatter(writers_.at(accumulator), accumulator);
    infer_again(graph_, update);
  }

  // Turns the storage in which a gradient is accumulated into a slice; returns the value before its first writer.
  ValueId slice_storage(ValueId gradient) {
    const NodeId producer = producers_.at(gradient);
    if (is_loop(graph_.node(producer))) {
      const Node& loop = graph_.node(producer);
      size_t k = 0;
      while (loop.outputs[k] != gradient) ++k;
      const ValueId start = loop.inputs[k], param = graph_.region(loop.body).params[k];
      make_slice(gradient), make_slice(param);
      slice_allocation(start);
      return param;
    }
    ValueId root = gradient;
    while (graph_.node(producers_.at(root)).op->kind() != OpKind::allocate) root = overwritten_by(root);
    slice_allocation(root);
    return root;
  }

  // The input in whose storage the producer of `output` wrote it.
  ValueId overwritten_by(ValueId output) const {
    const Node& node = graph_.node(producers_.at(output));
    for (const Alias& alias : node.op->aliases(node.attrs, static_cast<int>(node.inputs.size())))
      if (alias.must && node.outputs[static_cast<size_t>(alias.output)] == output)
        return node.inputs[static_cast<size_t>(alias.input)];
    HR_CHECK(false, "the gradient %{} has no storage of its own", output);
    return kNone;
  }

  void slice_allocation(ValueId id) {
    Node& node = graph_.node(producers_.at(id));
    HR_CHECK(node.op->kind() == OpKind::allocate, "the accumulator %{} is made by {}", id, op_name(*node.op));
    node.attrs.set("shard_axis", int64_t{spec_.axis}).set("shard_parts", int64_t{spec_.parts});
    make_slice(id);
  }

  // The writer adds into a cleared whole temporary, whose sum over the processes is accumulated into the slice. Returns
  // the accumulator's next value, which the writer made before the rewrite.
  ValueId scatter(const Writer& writer, ValueId accumulator) {
    const Node node = graph_.node(writer.node);
    const Place place = places_.at(writer.node), after{place.region, place.position + 1};
    HR_CHECK(node.attrs.has("accumulate"), "{} writes a gradient without attribute 'accumulate'", op_name(*node.op));
    Type type = graph_.value(accumulator).type;
    type.shard.reset();
    const NodeId storage =
        insert("allocate", {}, {{"dtype", std::string(dtype_name(type.dtype))}, {"dims", dims_text(type)}}, place,
               node.block, node.stage, Role::gradient);
    const NodeId cleared =
        insert("zero_fill", graph_.node(storage).outputs, {}, place, node.block, node.stage, Role::gradient);
    const ValueId next = node.outputs[writer.output], whole = add_value(graph_, type, Role::gradient);
    graph_.node(writer.node).inputs[writer.input] = result_of(graph_.node(cleared));
    graph_.node(writer.node).outputs[writer.output] = whole;
    graph_.node(writer.node).attrs.set("accumulate", "always");
    const NodeId summed = start_and_wait("reduce_scatter_start", slicing(), whole, after, node.block, Role::gradient);
    const NodeId added = insert("accumulate", {result_of(graph_.node(summed)), accumulator},
                                {{"accumulate", std::string(node.attrs.text("accumulate"))}}, after, node.block,
                                node.stage, Role::gradient);
    take_over(added, next);
    return next;
  }

  // `value` becomes its own sum over the processes, right after it is made.
  void all_reduce(ValueId value) {
    const NodeId producer = producers_.at(value);
    const Place place = places_.at(producer);
    const ValueId local = detach(producer, value);
    take_over(start_and_wait("all_reduce_start", {}, local, {place.region, place.position + 1},
                             graph_.node(producer).block, graph_.value(value).role),
              value);
  }

  // The squares of slices are summed separately and over the processes, those of whole gradients into the persistent
  // sum.
  void sum_norm() {
    ValueId whole = kNone, sliced = kNone;
    bool any_whole = false;
    for (NodeId id : norms_) {
      Node& node = graph_.node(id);
      HR_CHECK(places_.at(id).region == places_.at(norms_[0]).region, "the gradient norm is summed in two regions");
      if (id == norms_[0]) whole = operand(node, "accumulator");
      const bool slice = is_slice(operand(node, "x"));
      ValueId& chain = slice ? sliced : whole;
      const bool first = slice ? sliced == kNone : !any_whole;
      if (slice && first) {
        const NodeId storage = insert("allocate", {}, {{"dtype", "f64"}, {"dims", "1"}}, places_.at(id), kNone,
                                      Stage::update, Role::workspace);
        sliced = result_of(graph_.node(storage));
      }
      any_whole = any_whole || !slice;
      operand_of(graph_.node(id), "accumulator") = chain;
      graph_.node(id).attrs.set("accumulate", first ? "first" : "always");
      graph_.value(result_of(graph_.node(id))).role = graph_.value(chain).role;
      chain = result_of(graph_.node(id));
    }
    if (sliced != kNone) join_norms(sliced, whole, any_whole);
  }

  void join_norms(ValueId sliced, ValueId whole, bool any_whole) {
    const NodeId last = norms_.back();
    const Place after{places_.at(last).region, places_.at(last).position + 1};
    const ValueId norm = result_of(graph_.node(last)), kept = detach(last, norm);
    const NodeId summed = start_and_wait("all_reduce_start", {}, sliced == norm ? kept : sliced, after,
                                         graph_.node(last).block, Role::workspace);
    const NodeId added = insert("accumulate", {result_of(graph_.node(summed)), whole == norm ? kept : whole},
                                {{"accumulate", any_whole ? "always" : "carried"}}, after, graph_.node(last).block,
                                Stage::update, Role::data);
    take_over(added, norm);
  }

  // Gives the producer of `value` a fresh output in its place.
  ValueId detach(NodeId producer, ValueId value) {
    const Value old = graph_.value(value);
    const ValueId fresh = add_value(graph_, old.type, old.role);
    for (ValueId& output : graph_.node(producer).outputs)
      if (output == value) output = fresh;
    return fresh;
  }

  // The node's one output becomes `value`.
  void take_over(NodeId node, ValueId value) {
    const Value made = graph_.value(result_of(graph_.node(node)));
    graph_.value(value).type = made.type;
    graph_.value(value).role = made.role;
    result_of(graph_.node(node)) = value;
  }

  NodeId insert(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, Place place, int32_t block, Stage stage,
                Role role) {
    const NodeId id = make_node(graph_, find_op(op), std::move(inputs), std::move(attrs), block, stage, role);
    insertions_[static_cast<size_t>(place.region)].push_back({place.position, id});
    return id;
  }

  // The attributes of collectives between a whole value and its slices.
  Attrs slicing() const { return {{"axis", int64_t{spec_.axis}}, {"parts", int64_t{spec_.parts}}}; }

  // Returns the wait. Both stand at `place`: a later schedule may start earlier.
  NodeId start_and_wait(std::string_view op, Attrs attrs, ValueId value, Place place, int32_t block, Role role) {
    const NodeId start = insert(op, {value}, std::move(attrs), place, block, Stage::transfer, role);
    return insert("wait", graph_.node(start).outputs, {}, place, block, Stage::transfer, role);
  }

  Graph& graph_;
  const ShardSpec spec_;
  std::vector<std::vector<Insertion>> insertions_;  // by region
  std::map<NodeId, Place> places_;
  std::unordered_map<ValueId, NodeId> producers_;
  std::unordered_map<ValueId, Writer> writers_;  // by the value that is overwritten
  std::vector<NodeId> updates_, norms_;
};

}  // namespace

void shard(Graph& graph, int32_t parts) {
  HR_CHECK(parts >= 1, "{} processes", parts);
  if (parts > 1) Sharder(graph, parts).run();
}

}  // namespace headroom
