#include "passes/narrow_weights.h"

#include <map>

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/lora.h"

namespace headroom {
namespace {

bool is_weight(const Value& value) {
  return value.persistent && value.role == Role::parameter && !is_lora_name(value.name);
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
        if (is_weight(value) && value.type.shape.size() == 1)
          graph_.node(id).inputs[i] = cast(input, DType::f32, graph_.node(id).block);
      }
      for (int index : narrow)
        if (const ValueId input = graph_.node(id).inputs[static_cast<size_t>(index)];
            graph_.value(input).type.dtype == DType::f32 && graph_.value(input).type.storage.dense())
          graph_.node(id).inputs[static_cast<size_t>(index)] = cast(input, narrow_, graph_.node(id).block);
      infer_again(graph_, id);
      rewritten_.push_back(id);
    }
    graph_.region(region_).nodes = std::move(rewritten_);
  }

 private:
  ValueId cast(ValueId value, DType dtype, int32_t block) {
    const auto at = casts_.find(value);
    if (at != casts_.end()) return at->second;
    const NodeId node =
        make_node(graph_, find_op("cast"), {value}, {{"dtype", std::string(dtype_name(dtype))}}, block, Stage::forward);
    rewritten_.push_back(node);
    return casts_[value] = graph_.node(node).outputs[0];
  }

  Graph& graph_;
  RegionId region_;
  DType narrow_;
  std::vector<NodeId> rewritten_;
  std::map<ValueId, ValueId> casts_;
};

}  // namespace

void store_weights(Graph& graph, DType narrow, Adapters adapters) {
  for (Value& value : graph.values)
    if ((is_weight(value) && value.type.storage.dense()) ||
        (adapters == Adapters::narrow && value.persistent && is_lora_name(value.name)))
      value.type.dtype = narrow;
  for (const Program& program : std::vector<Program>(graph.programs))
    if (program.name != "load") Narrower(graph, program.region, narrow).run();
}

}  // namespace headroom
