#include "passes/narrow_weights.h"

#include <map>

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/lora.h"

namespace headroom {
namespace {

enum class WeightUse : uint8_t { train, read };

bool is_weight(const Value& value) {
  return value.persistent && value.role == Role::parameter && !is_lora_name(value.name);
}

bool is_vector(const Value& value) { return value.type.shape.size() == 1; }

bool stored_narrow(const Value& value, WeightUse use) {
  if (value.persistent && is_lora_name(value.name)) return use == WeightUse::read && !is_vector(value);
  return is_weight(value) && value.type.storage.dense() && (use == WeightUse::train || !is_vector(value));
}

class Narrower {
 public:
  Narrower(Graph& graph, RegionId region, DType narrow) : graph_(graph), region_(region), narrow_(narrow) {}

  void run() {
    const std::vector<NodeId> nodes = graph_.region(region_).nodes;
    for (NodeId id : nodes) {
      HR_CHECK(!is_loop(graph_.node(id)), "weights are narrowed in what is not yet inside a loop");
      const std::vector<int> narrow = graph_.node(id).op->narrow_inputs(graph_.node(id).attrs);
      for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        const ValueId input = graph_.node(id).inputs[i];
        const Value& value = graph_.value(input);
        if (is_weight(value) && is_vector(value) && value.type.dtype == narrow_)
          graph_.node(id).inputs[i] = cast(input, DType::f32, graph_.node(id).block);
      }
      for (int index : narrow)
        if (const ValueId input = graph_.node(id).inputs[static_cast<size_t>(index)];
            graph_.value(input).type.dtype == DType::f32 && graph_.value(input).type.storage.dense())
          graph_.node(id).inputs[static_cast<size_t>(index)] = cast(input, narrow_, graph_.node(id).block);
      narrow_look_up(graph_.node(id));
      infer_again(graph_, id);
      rewritten_.push_back(id);
    }
    graph_.region(region_).nodes = std::move(rewritten_);
  }

 private:
  // A table of codes stays as it is; what is looked up has the type that it would have with a narrow table.
  void narrow_look_up(Node& node) const {
    if (node.op->kind() != OpKind::lookup || node.attrs.has("dtype")) return;
    if (graph_.value(operand(node, "table")).type.storage.dense()) return;
    node.attrs.set("dtype", std::string(dtype_name(narrow_)));
  }

  ValueId cast(ValueId value, DType dtype, int32_t block) {
    const auto at = casts_.find(value);
    if (at != casts_.end()) return at->second;
    const NodeId node =
        make_node(graph_, find_op("cast"), {value}, {{"dtype", std::string(dtype_name(dtype))}}, block, Stage::forward);
    rewritten_.push_back(node);
    return casts_[value] = result_of(graph_.node(node));
  }

  Graph& graph_;
  RegionId region_;
  DType narrow_;
  std::vector<NodeId> rewritten_;
  std::map<ValueId, ValueId> casts_;
};

}  // namespace

static void store_weights(Graph& graph, DType narrow, WeightUse use) {
  for (Value& value : graph.values)
    if (stored_narrow(value, use)) value.type.dtype = narrow;
  for (const Program& program : std::vector<Program>(graph.programs))
    if (program.name != "load") Narrower(graph, program.region, narrow).run();
}

void store_weights_to_train(Graph& graph, DType narrow) { store_weights(graph, narrow, WeightUse::train); }
void store_weights_to_read(Graph& graph, DType narrow) { store_weights(graph, narrow, WeightUse::read); }

}  // namespace headroom
