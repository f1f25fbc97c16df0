#include "passes/recompute_segments.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph_index.h"
#include "ir/rewrite.h"

namespace headroom {
namespace {

// The inputs of layers that are alive at once, at most: when the backward pass of the s-th part of the network begins,
// s inputs of parts and those of the other layers of this part. The last part is that behind the segments.
int64_t inputs_alive(int64_t layers, int64_t segments) {
  const int64_t parts = segments + 1;
  return (layers + parts * (parts + 1) / 2 + parts - 1) / parts - 1;
}

class BodySegmenter {
 public:
  BodySegmenter(Graph& graph, RegionId region)
      : graph_(graph), region_(region), nodes_(graph.region(region).nodes), facts_(graph.values.size()) {}

  int64_t run(const std::vector<int64_t>& lengths) {
    survey();
    int32_t first = 0;
    for (const int64_t length : lengths) {
      first_ = first, last_ = first + static_cast<int32_t>(length) - 1;
      turn_ = blocks_[last_].turn;
      if (turn_ != kNone) redo();
      first = last_ + 1;
    }
    insert_all(graph_, region_, std::move(insertions_));
    return redone_;
  }

 private:
  struct Fact {
    NodeId producer = kNone;     // a forward node of this body
    bool leaves = false;         // read by a forward node of another block
    bool read = false;           // by the backward pass
    bool escapes = false;        // read outside blocks, or a result of the body
    int32_t from = 0, to = 0;    // blocks of the readers in the backward pass
    int32_t first_position = 0;  // of these readers
  };

  struct Block {
    std::vector<NodeId> forward, backward;
    int32_t turn = kNone;  // where its backward pass begins
  };

  Fact& fact(ValueId id) { return facts_[static_cast<size_t>(id)]; }

  void survey() {
    for (size_t at = 0; at < nodes_.size(); ++at) {
      const Node& node = graph_.node(nodes_[at]);
      Block& block = blocks_[node.block];
      if (is_backward(node) && block.backward.empty()) block.turn = static_cast<int32_t>(at);
      (is_backward(node) ? block.backward : block.forward).push_back(nodes_[at]);
      for (const ValueId input : node.inputs) read(fact(input), node, static_cast<int32_t>(at));
      if (node.stage != Stage::forward) continue;
      for (const ValueId output : node.outputs) fact(output).producer = nodes_[at];
    }
    for (const ValueId result : graph_.region(region_).results) fact(result).escapes = true;
  }

  void read(Fact& f, const Node& reader, int32_t position) {
    if (!is_backward(reader)) {
      f.leaves = f.leaves || (f.producer != kNone && graph_.node(f.producer).block != reader.block);
      f.escapes = f.escapes || reader.stage != Stage::forward;
      return;
    }
    f.escapes = f.escapes || reader.block == kNone;
    f.from = f.read ? std::min(f.from, reader.block) : reader.block;
    f.to = f.read ? std::max(f.to, reader.block) : reader.block;
    if (!f.read) f.first_position = position;
    f.read = true;
  }

  bool can_clone(const Node& node) const {
    return !is_loop(node) && !node.op->has_effect() && node.op->recompute_class() != RecomputeClass::never &&
           must_aliases(node).empty();
  }

  // Whether the segment in work hands the value from one of its layers to the next, and only its backward pass reads
  // it.
  bool is_handed_on(ValueId id) {
    const Fact& f = fact(id);
    return f.leaves && f.read && !f.escapes && f.from >= first_ && f.to <= last_ && f.first_position >= turn_ &&
           can_clone(graph_.node(f.producer));
  }

  // A cast, a rounding or decoded codes of a weight: computed at each use.
  bool is_weight_form(const Node& node) const {
    const OpKind kind = node.op->kind();
    return (kind == OpKind::cast || kind == OpKind::weight_rounding || kind == OpKind::decoding) &&
           graph_.value(source_of(node)).persistent;
  }

  bool is_cloned(ValueId id) {
    const Fact& f = fact(id);
    if (f.producer == kNone || f.escapes || (f.read && !handed_on_.contains(id))) return false;
    const Node& producer = graph_.node(f.producer);
    const bool inside = producer.block >= first_ && producer.block < last_;
    return can_clone(producer) && (inside || (producer.block == kNone && is_weight_form(producer)));
  }

  void redo() {
    clones_.clear(), handed_on_.clear();
    std::vector<ValueId> order;
    for (int32_t block = first_; block < last_; ++block)
      for (const NodeId id : blocks_[block].forward)
        for (const ValueId output : graph_.node(id).outputs)
          if (is_handed_on(output) && handed_on_.insert(output).second) order.push_back(output);
    for (const ValueId value : order) available(value, graph_.node(fact(value).producer).block);
    redone_ += static_cast<int64_t>(order.size());
    for (int32_t block = first_; block <= last_; ++block)
      for (const NodeId id : blocks_[block].backward)
        for (ValueId& input : graph_.node(id).inputs)
          if (handed_on_.contains(input)) input = clones_.at(input);
  }

  // The value that the segment's clones read: `id`, or its clone, which is made if it does not exist.
  ValueId available(ValueId id, int32_t block) {
    if (!is_cloned(id)) return id;
    if (const auto at = clones_.find(id); at != clones_.end()) return at->second;
    const NodeId producer = fact(id).producer;
    if (graph_.node(producer).block != kNone) block = graph_.node(producer).block;
    std::vector<ValueId> inputs = graph_.node(producer).inputs;
    for (ValueId& input : inputs) input = available(input, block);
    const NodeId clone = clone_node(graph_, producer, Stage::recompute);
    graph_.node(clone).inputs = std::move(inputs);
    graph_.node(clone).block = block;
    insertions_.push_back({turn_, clone});
    for (size_t i = 0; i < graph_.node(clone).outputs.size(); ++i)
      clones_[graph_.node(producer).outputs[i]] = graph_.node(clone).outputs[i];
    return clones_.at(id);
  }

  Graph& graph_;
  RegionId region_;
  const std::vector<NodeId> nodes_;
  std::vector<Fact> facts_;
  std::map<int32_t, Block> blocks_;
  int32_t first_ = 0, last_ = 0, turn_ = 0;  // of the segment in work: its blocks, and the last one's turn
  std::set<ValueId> handed_on_;
  std::map<ValueId, ValueId> clones_;
  std::vector<Insertion> insertions_;
  int64_t redone_ = 0;
};

}  // namespace

std::vector<int64_t> segment_lengths(int64_t layers, int64_t segments) {
  const int64_t alive = inputs_alive(layers, segments);
  layers -= alive - segments;  // behind the segments
  std::vector<int64_t> lengths;
  for (int64_t s = segments; s > 0; --s) {
    lengths.push_back(std::min(alive + 1 - s, layers));
    layers -= lengths.back();
  }
  std::reverse(lengths.begin(), lengths.end());
  return lengths;
}

int64_t most_segments(int64_t layers) {
  int64_t best = 0;
  for (int64_t segments = 1; segments < layers; ++segments) {
    if (inputs_alive(layers, segments) < inputs_alive(layers, best)) best = segments;
    if (segments * segments > 4 * layers) break;  // more than the best by far
  }
  return best;
}

int64_t recompute_segments(Graph& graph, int64_t segments) {
  const std::vector<int64_t> lengths = segment_lengths(block_count(graph), segments);
  const RegionId regions = static_cast<RegionId>(graph.regions.size());
  int64_t count = 0;
  for (RegionId region = 0; region < regions; ++region)
    if (trains(graph, region)) count += BodySegmenter(graph, region).run(lengths);
  return count;
}

}  // namespace headroom
