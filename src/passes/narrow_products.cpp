#include "passes/narrow_products.h"

#include "base/error.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/lora.h"

namespace headroom {
namespace {

bool is_weight_cast(const Graph& graph, const Node& node) {
  return node.op->kind() == OpKind::cast && graph.value(source_of(node)).persistent &&
         graph.value(source_of(node)).role == Role::parameter;
}

bool joins_products(const Value& weight) { return is_lora_name(weight.name) && weight.type.shape.size() == 2; }

}  // namespace

void narrow_products(Graph& graph, RegionId region, DType narrow) {
  const std::string name(dtype_name(narrow));
  const std::vector<NodeId> nodes = graph.region(region).nodes;
  std::map<ValueId, ValueId> narrowed;
  std::vector<NodeId> rewritten;
  for (NodeId id : nodes) {
    for (int index : graph.node(id).op->narrow_inputs(graph.node(id).attrs)) {
      const ValueId wide = graph.node(id).inputs.at(static_cast<size_t>(index));
      if (graph.value(wide).type.dtype != DType::f32 || !graph.value(wide).type.storage.dense()) continue;
      auto at = narrowed.find(wide);
      if (at == narrowed.end()) {
        const NodeId cast =
            make_node(graph, find_op("cast"), {wide}, {{"dtype", name}}, graph.node(id).block, Stage::forward);
        rewritten.push_back(cast);
        at = narrowed.emplace(wide, result_of(graph.node(cast))).first;
      }
      graph.node(id).inputs[static_cast<size_t>(index)] = at->second;
    }
    Node& node = graph.node(id);
    // "bf16" means the narrow type, whichever it is.
    if (const std::string_view dtype = node.op->narrow_dtype(node.attrs); !dtype.empty())
      node.attrs.set("dtype", dtype == "bf16" ? name : std::string(dtype));
    infer_again(graph, id);
    rewritten.push_back(id);
  }
  graph.region(region).nodes = std::move(rewritten);
}

void round_in_products(Graph& graph, RegionId region) {
  std::map<ValueId, ValueId> weights;  // cast -> weight
  for (NodeId id : graph.region(region).nodes) {
    Node& node = graph.node(id);
    // Matrices of adapters are small, and become operands of the wide product; those of experts do not.
    if (is_weight_cast(graph, node) && !joins_products(graph.value(source_of(node))))
      weights[result_of(node)] = source_of(node);
    for (int index : node.op->rounded_inputs()) {
      ValueId& input = node.inputs.at(static_cast<size_t>(index));
      if (const auto at = weights.find(input); at != weights.end()) input = at->second;
    }
  }
}

std::map<ValueId, ValueId> keep_weight_copies(Graph& graph, RegionId region) {
  std::map<ValueId, ValueId> copies;
  std::vector<ValueId> replacement(graph.values.size(), kNone);
  const RegionId load_region = graph.find_program("load");
  HR_CHECK(load_region != kNone, "the graph has no program 'load'");
  Builder load(graph, load_region, find_op);
  load.set_stage(Stage::transfer);
  std::vector<NodeId> kept;
  for (NodeId id : std::vector<NodeId>(graph.region(region).nodes)) {
    if (!is_weight_cast(graph, graph.node(id))) {
      kept.push_back(id);
      continue;
    }
    const ValueId weight = source_of(graph.node(id)), cast = result_of(graph.node(id));
    const Type type = graph.value(cast).type;
    const ValueId copy =
        load.persistent(fmt::format("{}#{}", graph.value(weight).name, dtype_name(type.dtype)), type, Role::parameter);
    load.call("cast", {weight, copy}, {{"dtype", std::string(dtype_name(type.dtype))}});
    replacement[static_cast<size_t>(cast)] = copy;
    copies[copy] = weight;
  }
  graph.region(region).nodes = std::move(kept);
  replace_uses(graph, replacement);
  return copies;
}

bool is_weight_copy(std::string_view name) { return name.ends_with("#bf16") || name.ends_with("#f16"); }

}  // namespace headroom
