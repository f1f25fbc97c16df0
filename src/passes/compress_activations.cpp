#include "passes/compress_activations.h"

#include <algorithm>
#include <map>

#include "ir/rewrite.h"
#include "ops/registry.h"

namespace headroom {
namespace {

constexpr int64_t kLeastRow = 8;  // elements

class BodyCompressor {
 public:
  BodyCompressor(Graph& graph, RegionId region) : graph_(graph), region_(region) {}

  int64_t run() {
    const std::vector<NodeId> nodes = graph_.region(region_).nodes;
    survey(nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int32_t position = static_cast<int32_t>(i);
      if (is_backward(graph_.node(nodes[i]))) read_decoded(nodes[i], position);
      if (graph_.node(nodes[i]).stage != Stage::forward) continue;
      for (const ValueId output : std::vector<ValueId>(graph_.node(nodes[i]).outputs))
        if (saved_.contains(output) && saved_.at(output)) encode(output, nodes[i], position);
    }
    insert_all(graph_, region_, std::move(insertions_));
    return static_cast<int64_t>(codes_.size());
  }

 private:
  bool has_rows(ValueId id) const {
    const Value& value = graph_.value(id);
    const Type& type = value.type;
    return value.role == Role::activation && !value.persistent && type.storage.dense() && !type.shard &&
           is_floating(type.dtype) && type.shape.size() >= 2 && type.shape.back().symbol < 0 &&
           type.shape.back().constant >= kLeastRow;
  }

  // The forward values of layers that backward nodes read: true while all these are of layers.
  void survey(const std::vector<NodeId>& nodes) {
    std::map<ValueId, bool> made;
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      if (node.stage == Stage::forward && node.block >= 0)
        for (const ValueId output : node.outputs) made[output] = has_rows(output);
      if (!is_backward(node)) continue;
      for (const ValueId input : node.inputs) {
        const auto at = made.find(input);
        if (at == made.end() || !at->second) continue;
        bool& by_layers = saved_.try_emplace(input, true).first->second;
        by_layers = by_layers && node.block >= 0;
      }
    }
  }

  NodeId make(const char* op, ValueId input, int32_t block, Stage stage, int32_t position) {
    const NodeId node = make_node(graph_, find_op(op), {input}, {}, block, stage);
    insertions_.push_back({position, node});
    return node;
  }

  void encode(ValueId value, NodeId producer, int32_t position) {
    const NodeId node = make("encode_rows", value, graph_.node(producer).block, Stage::forward, position + 1);
    codes_[value] = result_of(graph_.node(node));
  }

  void read_decoded(NodeId reader, int32_t position) {
    const int32_t block = graph_.node(reader).block;
    if (block != block_in_work_) decoded_.clear(), block_in_work_ = block;
    for (size_t i = 0; i < graph_.node(reader).inputs.size(); ++i) {
      const ValueId input = graph_.node(reader).inputs[i];
      const auto codes = codes_.find(input);
      if (codes == codes_.end()) continue;
      auto at = decoded_.find(input);
      if (at == decoded_.end()) {
        const NodeId node = make("decode_rows", codes->second, block, Stage::recompute, position);
        at = decoded_.emplace(input, result_of(graph_.node(node))).first;
      }
      graph_.node(reader).inputs[i] = at->second;
    }
  }

  Graph& graph_;
  RegionId region_;
  std::map<ValueId, bool> saved_;
  std::map<ValueId, ValueId> codes_, decoded_;  // decoded: of the current block
  int32_t block_in_work_ = kNone;
  std::vector<Insertion> insertions_;
};

}  // namespace

int64_t compress_activations(Graph& graph) {
  const RegionId regions = static_cast<RegionId>(graph.regions.size());
  int64_t count = 0;
  for (RegionId region = 0; region < regions; ++region)
    if (trains(graph, region)) count += BodyCompressor(graph, region).run();
  return count;
}

}  // namespace headroom
