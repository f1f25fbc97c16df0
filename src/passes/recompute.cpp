#include "passes/recompute.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/graph_index.h"
#include "ir/rewrite.h"

namespace headroom {
namespace {

struct NamedSet {
  std::string_view name;
  Keep set;
};
constexpr NamedSet kLevels[] = {{"keep-all", Keep::all},
                                {"drop-cheap", Keep::no_cheap},
                                {"drop-attention", Keep::no_attention},
                                {"keep-attention", Keep::attention_only},
                                {"block-input", Keep::block_input}};
constexpr NamedSet kClasses[] = {{"cheap", Keep::no_cheap},
                                 {"norms", Keep::norms},
                                 {"elementwise", Keep::elementwise},
                                 {"attention", Keep::attention},
                                 {"projections", Keep::projections},
                                 {"output", Keep::output},
                                 {"mlp", Keep::mlp}};

bool redoes(Keep keep, Keep tensor_class) {
  return (static_cast<uint8_t>(keep) & static_cast<uint8_t>(tensor_class)) != 0;
}

class BodyRewriter {
 public:
  BodyRewriter(Graph& graph, RegionId region, const std::vector<Keep>& keep)
      : graph_(graph), region_(region), keep_(keep) {}

  void run() {
    const std::vector<NodeId> nodes = graph_.region(region_).nodes;
    survey(nodes);
    decide(nodes);
    std::vector<Insertion> insertions;
    for (size_t position = 0; position < nodes.size(); ++position) {
      if (graph_.node(nodes[position]).stage != Stage::backward) continue;
      const int32_t block = graph_.node(nodes[position]).block;
      if (block != block_in_work_) clones_.clear(), block_in_work_ = block;
      for (size_t i = 0; i < graph_.node(nodes[position]).inputs.size(); ++i) {
        const ValueId replacement =
            available(graph_.node(nodes[position]).inputs[i], block, static_cast<int32_t>(position), insertions);
        graph_.node(nodes[position]).inputs[i] = replacement;
      }
    }
    insert_all(graph_, region_, std::move(insertions));
  }

 private:
  struct Fact {
    NodeId producer = kNone;  // a forward node of this body
    bool needed = false;      // read by a backward node
    bool leaves = false;      // read by a forward node of another block, or a result of the body
    bool dropped = false;
    bool form_of_weight = false;  // a cast or a rounding of a weight, and dropped
    bool attended = false;        // computed from the block's attention core without a norm between
  };

  Fact& fact(ValueId id) { return facts_[static_cast<size_t>(id)]; }

  void survey(const std::vector<NodeId>& nodes) {
    facts_.assign(graph_.values.size(), {});
    for (NodeId id : nodes) {
      const Node& node = graph_.node(id);
      for (ValueId input : node.inputs) {
        Fact& f = fact(input);
        if (node.stage == Stage::backward) f.needed = true;
        if (f.producer != kNone && graph_.node(f.producer).block != node.block) f.leaves = true;
      }
      if (node.stage != Stage::forward) continue;
      for (ValueId output : node.outputs) fact(output).producer = id;
      if (node.op->recompute_class() == RecomputeClass::attention) attends_.insert(node.block);
    }
    for (ValueId result : graph_.region(region_).results) fact(result).leaves = true;
  }

  // A cast or a rounding of a weight alone.
  bool is_weight_form(const Node& node) {
    const OpKind kind = node.op->kind();
    return (kind == OpKind::cast || kind == OpKind::weight_rounding) &&
           (graph_.value(source_of(node)).persistent || fact(source_of(node)).form_of_weight);
  }

  bool is_decoding(const Node& node) { return node.op->kind() == OpKind::decoding && !fact(result_of(node)).leaves; }

  Keep choice(int32_t block) const {
    return block >= 0 && static_cast<size_t>(block) < keep_.size() ? keep_[static_cast<size_t>(block)] : Keep::all;
  }

  // In program order, so that a value may depend on inputs that are themselves recomputed.
  void decide(const std::vector<NodeId>& nodes) {
    int32_t attended_block = kNone;  // the block whose attention core came before
    for (NodeId id : nodes) {
      const Node& node = graph_.node(id);
      if (node.stage != Stage::forward || node.op->has_effect()) continue;
      const bool attends = node.op->recompute_class() == RecomputeClass::attention;
      if (attends) attended_block = node.block;
      const bool attended = attends || (node.op->kind() != OpKind::norm && reads_attended(node));
      const bool form = is_weight_form(node);
      const bool drop = form || is_decoding(node) || may_drop(node, node.block != attended_block);
      for (ValueId output : node.outputs) {
        fact(output).dropped = drop;
        fact(output).form_of_weight = form;
        fact(output).attended = attended;
      }
    }
  }

  bool reads_attended(const Node& node) {
    for (ValueId input : node.inputs) {
      const Fact& f = fact(input);
      if (f.attended && graph_.node(f.producer).block == node.block) return true;
    }
    return false;
  }

  Keep tensor_class(const Node& node, bool before_attention) {
    switch (node.op->recompute_class()) {
      case RecomputeClass::attention:
        return Keep::attention;
      case RecomputeClass::linear:
        if (reads_attended(node)) return Keep::output;
        return before_attention && attends_.contains(node.block) ? Keep::projections : Keep::mlp;
      default:
        return node.op->kind() == OpKind::norm ? Keep::norms : Keep::elementwise;
    }
  }

  bool may_drop(const Node& node, bool before_attention) {
    if (node.op->recompute_class() == RecomputeClass::never) return false;
    for (ValueId output : node.outputs)
      if (fact(output).leaves) return false;
    const Keep keep = choice(node.block);
    if (keep == Keep::all || keep == Keep::block_input) return keep == Keep::block_input;
    return redoes(keep, tensor_class(node, before_attention)) && rests_on_kept(node);
  }

  // Recomputing the node needs no value that would be kept only for this.
  bool rests_on_kept(const Node& node) {
    for (ValueId input : node.inputs) {
      const Fact& f = fact(input);
      if (f.producer != kNone && !f.needed && !f.dropped && !f.leaves) return false;
    }
    return true;
  }

  // The value that a node at `position` reads: `id` if it is kept, else its clone, which is made there if it does not
  // exist.
  ValueId available(ValueId id, int32_t block, int32_t position, std::vector<Insertion>& insertions) {
    if (static_cast<size_t>(id) >= facts_.size() || !fact(id).dropped) return id;
    if (const auto at = clones_.find(id); at != clones_.end()) return at->second;
    const NodeId producer = fact(id).producer;
    std::vector<ValueId> inputs = graph_.node(producer).inputs;
    for (ValueId& input : inputs) input = available(input, block, position, insertions);
    const NodeId clone = clone_node(graph_, producer, Stage::recompute);
    graph_.node(clone).inputs = std::move(inputs);
    if (graph_.node(clone).block == kNone) graph_.node(clone).block = block;
    insertions.push_back({position, clone});
    for (size_t i = 0; i < graph_.node(clone).outputs.size(); ++i)
      clones_[graph_.node(producer).outputs[i]] = graph_.node(clone).outputs[i];
    return clones_.at(id);
  }

  Graph& graph_;
  RegionId region_;
  const std::vector<Keep>& keep_;
  std::vector<Fact> facts_;
  std::set<int32_t> attends_;                    // blocks with an attention core
  std::unordered_map<ValueId, ValueId> clones_;  // of the current block
  int32_t block_in_work_ = kNone;
};

}  // namespace

std::string keep_name(Keep keep) {
  for (const auto& [name, set] : kLevels)
    if (set == keep) return std::string(name);
  std::string text;
  uint8_t named = 0;
  for (const auto& [name, set] : kClasses) {
    const uint8_t bits = static_cast<uint8_t>(set);
    if ((static_cast<uint8_t>(keep) & bits) != bits || (named & bits) == bits) continue;
    text += (text.empty() ? "drop-" : "+") + std::string(name);
    named |= bits;
  }
  return text;
}

std::optional<Keep> parse_keep(std::string_view name) {
  constexpr std::string_view drop = "drop-";
  for (const auto& [level, set] : kLevels)
    if (level == name) return set;
  if (!name.starts_with(drop)) return std::nullopt;
  Keep keep = Keep::all;
  for (std::string_view rest = name.substr(drop.size() - 1); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find('+'));
    const auto at =
        std::find_if(std::begin(kClasses), std::end(kClasses), [&](const NamedSet& of) { return of.name == word; });
    if (at == std::end(kClasses)) return std::nullopt;
    keep = keep | at->set;
    rest.remove_prefix(word.size());
  }
  return keep;
}

void recompute(Graph& graph, const std::vector<Keep>& keep) {
  const RegionId regions = static_cast<RegionId>(graph.regions.size());
  for (RegionId region = 0; region < regions; ++region)
    if (trains(graph, region)) BodyRewriter(graph, region, keep).run();
}

}  // namespace headroom
