#include "passes/lora_slots.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/expert_adapters.h"
#include "passes/freeze.h"
#include "passes/lora_targets.h"

namespace headroom {
namespace {

class Slots {
 public:
  Slots(Graph& graph, RegionId region, const LoraSlots& slots)
      : graph_(graph),
        region_(region),
        slots_(slots),
        shared_(graph, kNone, find_op),
        routers_(router_logits(graph, region)) {}

  int64_t run() {
    for (NodeId id : std::vector<NodeId>(graph_.region(region_).nodes)) {
      settle(graph_.node(id).inputs);
      nodes_.push_back(id);
      if (const ValueId weight = product_weight(graph_, graph_.node(id)); weight != kNone) extend(id, weight);
    }
    settle(graph_.region(region_).results);
    graph_.region(region_).nodes = std::move(nodes_);
    refuse_strangers();
    return static_cast<int64_t>(replaced_.size());
  }

 private:
  // Before the first reader of one of them come the waiting nodes; then all readers use the new values.
  void settle(std::vector<ValueId>& reads) {
    const bool any = std::any_of(reads.begin(), reads.end(), [&](ValueId id) { return replaced_.contains(id); });
    if (!any) return;
    nodes_.insert(nodes_.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    for (ValueId& id : reads)
      if (const auto at = replaced_.find(id); at != replaced_.end()) id = at->second;
  }

  bool has_slots(const Node& product, ValueId weight) {
    const std::string& name = graph_.value(weight).name;
    // The head's logits name their dtype.
    if (expert_weight(name) || routers_.contains(result_of(product)) || product.attrs.has("dtype")) return false;
    const std::string module = module_of(name);
    parts_.emplace(last_part(module));
    bool targeted = false;
    for (const std::string& target : slots_.targets)
      if (target_means(target, module)) {
        used_.insert(target);
        targeted = true;
      }
    return targeted;
  }

  void extend(NodeId id, ValueId weight) {
    const Node product = graph_.node(id);
    if (!has_slots(product, weight)) return;
    const std::string name = graph_.value(weight).name;
    const bool transposed = product.attrs.text("layout") == "in_out";
    const std::vector<Dim> shape = graph_.value(weight).type.shape;
    const Dim in = shape[transposed ? 0 : 1], out = shape[transposed ? 1 : 0];
    const Dim count = Dim::of(slots_.count), rank = Dim::of(slots_.rank);
    const ValueId x = operand(product, "x"), y = result_of(product);
    const ValueId a = data(slot_name(name, 'A'), {slots_.dtype, {count, rank, in}});
    const ValueId b = data(slot_name(name, 'B'), {slots_.dtype, {count, rank, out}});
    const ValueId scales = data(std::string(kSlotScales), {DType::f32, {count}});
    const Dim rows = graph_.value(x).type.shape[0];
    const ValueId of_rows = data(slot_rows_name(rows.constant), {DType::i32, {rows}});
    const NodeId node =
        make_node(graph_, find_op("lora_rows"), {x, a, b, scales, of_rows, y}, {}, product.block, Stage::forward);
    waiting_.push_back(node);
    replaced_[y] = result_of(graph_.node(node));
  }

  ValueId data(const std::string& name, const Type& type) {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id)
      if (graph_.value(id).persistent && graph_.value(id).name == name) return id;
    return shared_.persistent(name, type, Role::data);
  }

  void refuse_strangers() const {
    for (const std::string& target : slots_.targets)
      if (!used_.contains(target))
        throw Error(
            ErrorKind::usage,
            fmt::format("--lora-target-modules {} matches no layer of this model for which adapters can be served",
                        target),
            fmt::format("there are {}", fmt::join(parts_, ", ")));
  }

  Graph& graph_;
  RegionId region_;
  const LoraSlots& slots_;
  Builder shared_;
  std::set<ValueId> routers_;
  std::vector<NodeId> nodes_, waiting_;
  std::map<ValueId, ValueId> replaced_;
  std::set<std::string> used_, parts_;
};

}  // namespace

std::string slot_name(std::string_view weight, char which) {
  return fmt::format("{}{}.{}", kSlotPrefix, module_of(weight), which);
}

std::string slot_rows_name(int64_t rows) { return fmt::format("adapters.{}", rows); }

int64_t add_lora_slots(Graph& graph, RegionId region, const LoraSlots& slots) {
  HR_CHECK(slots.count > 0 && slots.rank > 0, "{} slots of rank {}", slots.count, slots.rank);
  return Slots(graph, region, slots).run();
}

}  // namespace headroom
