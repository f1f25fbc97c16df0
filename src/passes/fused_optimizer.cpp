#include "passes/fused_optimizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/registry.h"

namespace headroom {
namespace {

// An update that moves: its position in the body and the carried gradient that it frees.
struct Move {
  size_t position = 0;  // the update comes after this position of the body
  size_t carried = 0;   // index of its gradient among the loop's carried values
  NodeId update = kNone;
  std::vector<NodeId> norms;  // the squared norms of the same gradient: one, or one for each slice of its rows
};

class Fuser {
 public:
  Fuser(Graph& graph, RegionId program, NodeId loop)
      : graph_(graph), program_(program), loop_(loop), body_(graph.node(loop).body) {}

  int run() {
    index_body();
    index_norms();
    for (NodeId id : graph_.region(program_).nodes)
      if (graph_.node(id).op->kind() == OpKind::update) moves_.push_back(plan_move(id));
    std::stable_sort(moves_.begin(), moves_.end(),
                     [](const Move& a, const Move& b) { return a.position < b.position; });
    take_out_of_program();
    std::vector<ValueId> replacement(graph_.values.size(), kNone);
    ValueId norm = norm_start_;
    for (const Move& move : moves_) norm = place(move, norm, replacement);
    replace_uses(graph_, replacement);
    insert_all(graph_, body_, std::move(insertions_));
    drop_carried();
    remove_dead_nodes(graph_);
    return static_cast<int>(moves_.size());
  }

 private:
  void index_body() {
    const std::vector<NodeId>& nodes = graph_.region(body_).nodes;
    for (size_t position = 0; position < nodes.size(); ++position) {
      for (ValueId input : graph_.node(nodes[position]).inputs)
        first_use_.try_emplace(input, position), last_use_[input] = position;
      for (ValueId output : graph_.node(nodes[position]).outputs) produced_[output] = position;
    }
  }

  void index_norms() {
    for (NodeId id : graph_.region(program_).nodes) {
      const Node& node = graph_.node(id);
      if (node.op->kind() != OpKind::squared_norm) continue;
      norms_[operand(node, "x")].push_back(id);
      if (const ValueId sum = operand(node, "accumulator"); graph_.value(sum).persistent) norm_start_ = sum;
    }
  }

  Move plan_move(NodeId update) {
    const ValueId gradient = operand(graph_.node(update), "gradient");
    const auto& outputs = graph_.node(loop_).outputs;
    const auto at = std::find(outputs.begin(), outputs.end(), gradient);
    HR_CHECK(at != outputs.end(), "the gradient of an update is not a result of the loop");
    Move move{0, static_cast<size_t>(at - outputs.begin()), update, {}};
    move.position = produced_.at(graph_.region(body_).results[move.carried]);
    for (ValueId input : graph_.node(update).inputs)
      if (const auto use = last_use_.find(input); use != last_use_.end())
        move.position = std::max(move.position, use->second);
    if (const auto norm = norms_.find(gradient); norm != norms_.end()) move.norms = norm->second;
    return move;
  }

  void take_out_of_program() {
    std::vector<NodeId>& top = graph_.region(program_).nodes;
    const auto moved = [&](NodeId id) {
      return std::any_of(moves_.begin(), moves_.end(), [&](const Move& move) {
        return id == move.update || std::find(move.norms.begin(), move.norms.end(), id) != move.norms.end();
      });
    };
    top.erase(std::remove_if(top.begin(), top.end(), moved), top.end());
  }

  // Schedules the gradient's storage before its first use, then the norm and the update where the gradient is final.
  ValueId place(const Move& move, ValueId norm, std::vector<ValueId>& replacement) {
    const ValueId param = graph_.region(body_).params[move.carried],
                  result = graph_.region(body_).results[move.carried];
    const NodeId storage =
        make_node(graph_, find_op("allocate"), {}, {{"dtype", "f32"}, {"dims", dims_text(graph_.value(param).type)}},
                  kNone, Stage::backward, Role::gradient);
    insertions_.push_back({static_cast<int32_t>(first_use_.at(param)), storage});
    replacement[static_cast<size_t>(param)] = result_of(graph_.node(storage));
    const int32_t after = static_cast<int32_t>(move.position) + 1;
    const int32_t block = graph_.node(graph_.region(body_).nodes[move.position]).block;
    for (const NodeId id : move.norms) {
      Node& node = graph_.node(id);
      operand_of(node, "x") = result;
      operand_of(node, "accumulator") = norm;
      node.attrs.set("accumulate", norm == norm_start_ ? "first" : "always");
      node.block = block;
      norm = result_of(node);
      insertions_.push_back({after, id});
    }
    operand_of(graph_.node(move.update), "gradient") = result;
    graph_.node(move.update).block = block;
    insertions_.push_back({after, move.update});
    return norm;
  }

  void drop_carried() {
    std::vector<size_t> dropped;
    for (const Move& move : moves_) dropped.push_back(move.carried);
    std::sort(dropped.rbegin(), dropped.rend());
    for (size_t k : dropped)
      for (std::vector<ValueId>* list : {&graph_.node(loop_).inputs, &graph_.node(loop_).outputs,
                                         &graph_.region(body_).params, &graph_.region(body_).results})
        list->erase(list->begin() + static_cast<std::ptrdiff_t>(k));
  }

  Graph& graph_;
  RegionId program_;
  NodeId loop_;
  RegionId body_;
  ValueId norm_start_ = kNone;                              // the persistent accumulator of the squared norm
  std::unordered_map<ValueId, std::vector<NodeId>> norms_;  // the squared_norm nodes of a gradient
  std::unordered_map<ValueId, size_t> first_use_, last_use_, produced_;
  std::vector<Move> moves_;
  std::vector<Insertion> insertions_;
};

}  // namespace

int fuse_optimizer(Graph& graph, RegionId program) {
  for (NodeId id : graph.region(program).nodes)
    if (is_loop(graph.node(id))) return Fuser(graph, program, id).run();
  return 0;
}

}  // namespace headroom
