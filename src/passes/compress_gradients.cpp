#include "passes/compress_gradients.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/builder.h"
#include "ir/graph_index.h"
#include "ir/rewrite.h"
#include "ops/registry.h"

namespace headroom {
namespace {

// The nodes of a loop's body that add to a carried gradient: positions of the first and the last one.
struct Additions {
  int32_t first = kNone;
  int32_t last = kNone;
  bool of_layers = true;
};

class LoopCompressor {
 public:
  LoopCompressor(Graph& graph, RegionId region, NodeId loop, bool accumulates)
      : graph_(graph), region_(region), loop_(loop), body_(graph.node(loop).body), accumulates_(accumulates) {}

  int64_t run() {
    survey();
    int64_t count = 0;
    for (size_t k = 0; k < additions_.size(); ++k)
      if (additions_[k].first != kNone && additions_[k].of_layers) narrow(k), ++count;
    if (count == 0) return 0;
    // Where both stand at one position, the f32 value of one gradient dies before that of the next exists.
    std::vector<Insertion> all = std::move(after_);
    all.insert(all.end(), before_.begin(), before_.end());
    insert_all(graph_, body_, std::move(all));
    widen_for_readers();
    return count;
  }

 private:
  // Follows each carried matrix's gradient through the body, from one node that adds to it to the next.
  void survey() {
    for (NodeId id : graph_.region(region_).nodes)
      if (graph_.node(id).op->kind() == OpKind::allocate) allocated_by_[result_of(graph_.node(id))] = id;
    const Region& body = graph_.region(body_);
    additions_.resize(body.params.size());
    std::unordered_map<ValueId, size_t> newest;  // the newest value of a gradient -> its index
    for (size_t k = 0; k < body.params.size(); ++k)
      if (is_matrix_gradient(graph_.node(loop_).inputs[k])) newest[body.params[k]] = k;
    for (size_t position = 0; position < body.nodes.size(); ++position) {
      const Node& node = graph_.node(body.nodes[position]);
      for (const Alias& alias : must_aliases(node)) {
        const auto at = newest.find(node.inputs[static_cast<size_t>(alias.input)]);
        if (at == newest.end()) continue;
        const size_t k = at->second;
        Additions& to = additions_[k];
        if (to.first == kNone) to.first = static_cast<int32_t>(position);
        to.last = static_cast<int32_t>(position);
        to.of_layers = to.of_layers && node.block != kNone;
        newest[node.outputs[static_cast<size_t>(alias.output)]] = k;
      }
    }
  }

  bool is_matrix_gradient(ValueId id) const {
    const Value& value = graph_.value(id);
    return value.role == Role::gradient && value.type.dtype == DType::f32 && value.type.shape.size() >= 2 &&
           allocated_by_.contains(id);
  }

  // Carries the gradient in bf16, and gives the nodes that add to it an f32 value.
  void narrow(size_t k) {
    const Additions& additions = additions_[k];
    const ValueId start = graph_.node(loop_).inputs[k], done = graph_.node(loop_).outputs[k],
                  kept = graph_.region(body_).params[k];
    const NodeId first = graph_.region(body_).nodes[static_cast<size_t>(additions.first)];
    const Type wide = graph_.value(kept).type;
    const NodeId storage = allocated_by_.at(start);
    graph_.node(storage).attrs.set("dtype", std::string(dtype_name(DType::bf16)));
    infer_again(graph_, storage);
    for (const ValueId id : {kept, done}) graph_.value(id).type.dtype = DType::bf16;
    const ValueId sum = accumulates_ ? widened(kept, first, additions.first) : allocated(wide, first, additions.first);
    for (ValueId& input : graph_.node(first).inputs)
      if (input == kept) input = sum;
    const ValueId result = graph_.region(body_).results[k];
    const NodeId last = graph_.region(body_).nodes[static_cast<size_t>(additions.last)];
    const NodeId rounded = make_cast({result, kept}, DType::bf16, last, Role::gradient);
    after_.push_back({additions.last + 1, rounded});
    graph_.region(body_).results[k] = result_of(graph_.node(rounded));
    narrowed_.insert(done);
  }

  ValueId widened(ValueId kept, NodeId before, int32_t position) {
    const NodeId node = make_cast({kept}, DType::f32, before, Role::gradient);
    before_.push_back({position, node});
    return result_of(graph_.node(node));
  }

  ValueId allocated(const Type& type, NodeId before, int32_t position) {
    const NodeId node = make_node(graph_, find_op("allocate"), {},
                                  {{"dtype", std::string(dtype_name(type.dtype))}, {"dims", dims_text(type)}},
                                  graph_.node(before).block, graph_.node(before).stage, Role::gradient);
    before_.push_back({position, node});
    return result_of(graph_.node(node));
  }

  // Of the block and the stage of a node.
  NodeId make_cast(std::vector<ValueId> inputs, DType dtype, NodeId like, Role role) {
    return make_node(graph_, find_op("cast"), std::move(inputs), {{"dtype", std::string(dtype_name(dtype))}},
                     graph_.node(like).block, graph_.node(like).stage, role);
  }

  // After the loop each reader of a gradient casts it for itself, so that one f32 copy is alive at a time.
  void widen_for_readers() {
    const std::vector<NodeId> nodes = graph_.region(region_).nodes;
    std::vector<Insertion> casts;
    for (size_t position = 0; position < nodes.size(); ++position)
      for (size_t i = 0; i < graph_.node(nodes[position]).inputs.size(); ++i) {
        const ValueId gradient = graph_.node(nodes[position]).inputs[i];
        if (!narrowed_.contains(gradient)) continue;
        const NodeId cast = make_cast({gradient}, DType::f32, nodes[position], Role::workspace);
        casts.push_back({static_cast<int32_t>(position), cast});
        graph_.node(nodes[position]).inputs[i] = result_of(graph_.node(cast));
      }
    insert_all(graph_, region_, std::move(casts));
  }

  Graph& graph_;
  RegionId region_;
  NodeId loop_;
  RegionId body_;
  bool accumulates_;
  std::unordered_map<ValueId, NodeId> allocated_by_;
  std::vector<Additions> additions_;       // by the index of the carried value
  std::unordered_set<ValueId> narrowed_;   // outputs of the loop
  std::vector<Insertion> before_, after_;  // into the body: where an f32 value begins, and where it is rounded
};

}  // namespace

int64_t compress_gradients(Graph& graph, bool accumulates) {
  int64_t count = 0;
  for (const Program& program : std::vector<Program>(graph.programs))
    for (NodeId id : std::vector<NodeId>(graph.region(program.region).nodes))
      if (is_loop(graph.node(id))) count += LoopCompressor(graph, program.region, id, accumulates).run();
  return count;
}

}  // namespace headroom
