#include "cost/stream_timeline.h"

#include <algorithm>
#include <unordered_map>

#include "cost/predict.h"
#include "ir/call_types.h"
#include "ir/tier_bytes.h"

namespace headroom {
namespace {

// When the kernels are done, and the copies of each stream.
struct Clocks {
  double kernels = 0;
  std::array<double, 3> in{}, out{};  // by the lower tier

  double last() const {
    return std::max({kernels, *std::max_element(in.begin(), in.end()), *std::max_element(out.begin(), out.end())});
  }
};

}  // namespace

StreamTimeline::StreamTimeline(const Graph& graph, RegionId program, const Bindings& bindings, int64_t trips,
                               CallCosts& costs)
    : trips_(trips) {
  std::unordered_map<ValueId, size_t> copy_of;  // by token
  CallTypes types;
  for (NodeId id : graph.region(program).nodes) {
    const Node& node = graph.node(id);
    if (is_loop(node)) {
      events_.push_back({Event::loop, 0, loops_.size()});
      loops_.emplace_back(graph, node.body, bindings, 1, costs);
      continue;
    }
    if (node.op->kind() == OpKind::wait)
      if (const auto copy = copy_of.find(operand(node, "token")); copy != copy_of.end())
        events_.push_back({Event::wait, 0, copy->second});
    if (node.op->cost_class() == CostClass::none) continue;
    const OpCall call = types.of(graph, node, bindings);
    if (node.op->kind() == OpKind::copy_start) {
      copy_of[token_of(node)] = copies_.size();
      add_copy(graph, node, call, costs.profile());
      continue;
    }
    add_kernel(costs.seconds(*node.op, call));
  }
}

void StreamTimeline::add_kernel(double seconds) {
  if (seconds == 0) return;
  if (events_.empty() || events_.back().kind != Event::kernels) events_.push_back({Event::kernels, 0, 0});
  events_.back().seconds += seconds;
}

void StreamTimeline::add_copy(const Graph& graph, const Node& node, const OpCall& call, const Profile& profile) {
  const Value &from = graph.value(source_of(node)), &to = graph.value(result_of(node));
  Copy copy;
  copy.out = to.type.tier != Tier::device;
  copy.tier = copy.out ? to.type.tier : from.type.tier;
  copy.role = copy.out ? to.role : from.role;
  for (const Tier tier : kLowerTiers)
    copy.seconds[static_cast<size_t>(tier)] = predict_copy(*node.op, call, tier, copy.out, profile);
  events_.push_back({Event::start, 0, copies_.size()});
  copies_.push_back(copy);
}

double StreamTimeline::seconds(const TierOf& tier_of) const {
  Clocks clocks;
  std::vector<double> done(copies_.size(), 0);
  for (const Event& event : events_) {
    if (event.kind == Event::kernels) clocks.kernels += event.seconds;
    if (event.kind == Event::loop) clocks.kernels += static_cast<double>(trips_) * loops_[event.index].seconds(tier_of);
    if (event.kind == Event::wait) clocks.kernels = std::max(clocks.kernels, done[event.index]);
    if (event.kind != Event::start) continue;
    const Copy& copy = copies_[event.index];
    const auto tier = static_cast<size_t>(tier_of ? tier_of(copy.role) : copy.tier);
    double& stream = (copy.out ? clocks.out : clocks.in)[tier];
    stream = std::max(stream, clocks.kernels) + copy.seconds[tier];
    done[event.index] = stream;
  }
  return clocks.last();
}

double predict_program(const Graph& graph, RegionId program, const Bindings& bindings, int64_t trips,
                       const Profile& profile) {
  CallCosts costs(profile);
  return StreamTimeline(graph, program, bindings, trips, costs).seconds();
}

}  // namespace headroom
