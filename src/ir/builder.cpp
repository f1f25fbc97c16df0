#include "ir/builder.h"

#include <algorithm>

#include "base/error.h"
#include "ir/row_slice.h"

namespace headroom {

ValueId add_value(Graph& graph, Type type, Role role, std::string name) {
  graph.values.push_back({std::move(name), std::move(type), role, false});
  return static_cast<ValueId>(graph.values.size() - 1);
}

RegionId add_program(Graph& graph, std::string_view name) {
  HR_CHECK(graph.find_program(name) == kNone, "program {} is declared twice", name);
  graph.regions.emplace_back();
  const RegionId region = static_cast<RegionId>(graph.regions.size() - 1);
  graph.programs.push_back({std::string(name), region});
  return region;
}

ValueId Builder::persistent(std::string name, Type type, Role role) {
  const ValueId id = add_value(*graph_, std::move(type), role, std::move(name));
  graph_->value(id).persistent = true;
  return id;
}

std::vector<ValueId> Builder::append(std::string_view op_name, std::vector<ValueId> inputs, Attrs attrs, Role role) {
  inputs.erase(std::remove(inputs.begin(), inputs.end(), kNone), inputs.end());
  const Op& op = lookup_(op_name);
  std::vector<Type> types;
  types.reserve(inputs.size());
  for (ValueId id : inputs) types.push_back(graph_->value(id).type);
  std::vector<Type> results = infer_call(op, types, attrs);
  Node node;
  node.op = &op;
  for (size_t i = 0; i < results.size(); ++i) node.outputs.push_back(add_value(*graph_, std::move(results[i]), role));
  for (const Alias& alias : op.aliases(attrs, static_cast<int>(inputs.size())))
    if (alias.must)
      graph_->value(node.outputs[static_cast<size_t>(alias.output)]).role =
          graph_->value(inputs[static_cast<size_t>(alias.input)]).role;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.block = block_;
  node.stage = stage_;
  graph_->nodes.push_back(std::move(node));
  graph_->region(region_).nodes.push_back(static_cast<NodeId>(graph_->nodes.size() - 1));
  return graph_->nodes.back().outputs;
}

ValueId Builder::call(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, Role role) {
  const std::vector<ValueId> outputs = append(op, std::move(inputs), std::move(attrs), role);
  HR_CHECK(outputs.size() == 1, "{} has {} outputs, not one", op, outputs.size());
  return outputs.front();
}

std::vector<ValueId> Builder::loop(
    std::string_view trips, const std::vector<ValueId>& carried,
    const std::function<std::vector<ValueId>(Builder&, const std::vector<ValueId>&)>& body) {
  graph_->regions.emplace_back();
  const RegionId region = static_cast<RegionId>(graph_->regions.size() - 1);
  std::vector<ValueId> params;
  for (ValueId id : carried) {
    const Value source = graph_->value(id);
    params.push_back(add_value(*graph_, source.type, source.role));
  }
  graph_->region(region).params = params;
  Builder inner(*graph_, region, lookup_);
  inner.set_stage(stage_);
  std::vector<ValueId> results = body(inner, params);
  HR_CHECK(results.size() == carried.size(), "the loop carries {} values and yields {}", carried.size(),
           results.size());
  graph_->region(region).results = results;
  Node node;
  node.op = &lookup_(kLoop);
  node.inputs = carried;
  node.attrs.set("trips", std::string(trips));
  node.block = block_;
  node.stage = stage_;
  node.body = region;
  for (ValueId id : carried) {
    const Value source = graph_->value(id);
    node.outputs.push_back(add_value(*graph_, source.type, source.role));
  }
  graph_->nodes.push_back(std::move(node));
  graph_->region(region_).nodes.push_back(static_cast<NodeId>(graph_->nodes.size() - 1));
  return graph_->nodes.back().outputs;
}

}  // namespace headroom
