#include "passes/linear_groups.h"

#include <algorithm>

#include "ops/linear_group/members.h"
#include "ops/registry.h"

namespace headroom {
namespace {

class Grouper {
 public:
  Grouper(Graph& graph, RegionId region) : graph_(graph), region_(region) {}

  int64_t run() {
    for (NodeId id : graph_.region(region_).nodes) {
      close_before(graph_.node(id));
      if (joins(graph_.node(id))) place(id);
    }
    int64_t count = 0;
    for (const Group& group : groups_)
      if (group.members.size() > 1) {
        merge(group.members);
        ++count;
      }
    std::erase_if(graph_.region(region_).nodes,
                  [&](NodeId id) { return std::find(merged_.begin(), merged_.end(), id) != merged_.end(); });
    return count;
  }

 private:
  struct Group {
    std::vector<NodeId> members;
    bool open = true;
  };

  static bool joins(const Node& node) {
    return node.op && node.op->product() == Product{ProductPart::output, ProductMatrices::one} &&
           node.attrs.integer("residual") == 0 && node.attrs.integer("low_rank") == 0;
  }

  // Readers of a member must come after the group. A loop may read anything.
  void close_before(const Node& node) {
    for (Group& group : groups_)
      for (NodeId member : group.members) {
        const ValueId output = result_of(graph_.node(member));
        if (is_loop(node) || std::find(node.inputs.begin(), node.inputs.end(), output) != node.inputs.end())
          group.open = false;
      }
  }

  bool alike(const Node& a, const Node& b) const {
    return first_factor(a) == first_factor(b) && a.block == b.block && a.stage == b.stage && a.attrs == b.attrs;
  }

  void place(NodeId id) {
    for (Group& group : groups_)
      if (group.open && group.members.size() < kGroupMost && alike(graph_.node(group.members[0]), graph_.node(id))) {
        group.members.push_back(id);
        return;
      }
    groups_.push_back({{id}});
  }

  // The last member becomes the group, with its members' weights, then their biases.
  void merge(const std::vector<NodeId>& members) {
    Node& group = graph_.node(members.back());
    const size_t operands = group.inputs.size();
    std::vector<ValueId> inputs{first_factor(group)}, outputs;
    for (size_t i = 1; i < operands; ++i)
      for (NodeId member : members) inputs.push_back(graph_.node(member).inputs[i]);
    for (NodeId member : members) outputs.push_back(result_of(graph_.node(member)));
    group.op = &find_op("linear_group");
    group.inputs = std::move(inputs);
    group.outputs = std::move(outputs);
    merged_.insert(merged_.end(), members.begin(), members.end() - 1);
  }

  Graph& graph_;
  RegionId region_;
  std::vector<Group> groups_;
  std::vector<NodeId> merged_;
};

}  // namespace

int64_t group_linears(Graph& graph, RegionId region) { return Grouper(graph, region).run(); }

}  // namespace headroom
