// Rules about storage: in-place updates, loop-carried values, asynchronous copies.
#include <algorithm>

#include "ir/print.h"
#include "ir/tier_bytes.h"
#include "ir/verify_rules.h"

namespace headroom {

void check_alias_in_range(const CheckedGraph& checked, Findings& findings) {
  for (const auto& [node, message] : checked.bad_aliases) findings.add(node, "{}", message);
}

void check_alias_types(const CheckedGraph& checked, Findings& findings) {
  const Graph& graph = checked.graph;
  const Bindings bounds = graph.bounds();
  for (const Overwrite& overwrite : checked.overwrites) {
    if (is_loop(graph.node(overwrite.node))) continue;  // loop-results-match-params is stricter
    const ValueId output = graph.node(overwrite.node).outputs[static_cast<size_t>(overwrite.output)];
    const Type& from = graph.value(overwrite.value).type;
    const Type& to = graph.value(output).type;
    if (from == to) continue;
    if (from.tier != to.tier || storage_bytes(concrete(from, bounds)) != storage_bytes(concrete(to, bounds)))
      findings.add(overwrite.node, "output %{} is {} and must lie in the storage of %{}, which is {}", output,
                   print_type(graph, to), overwrite.value, print_type(graph, from));
  }
}

void check_overwritten_once(const CheckedGraph& checked, Findings& findings) {
  const std::vector<Overwrite>& all = checked.overwrites;
  std::vector<std::pair<ValueId, int32_t>> taken;  // value, output
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].node == all[begin].node) ++end;
    if (end - begin == 1) continue;
    taken.clear();
    for (size_t i = begin; i < end; ++i) taken.emplace_back(all[i].value, all[i].output);
    std::sort(taken.begin(), taken.end());
    for (size_t i = 1; i < taken.size(); ++i)
      if (taken[i].first == taken[i - 1].first)
        findings.add(all[begin].node, "outputs {} and {} both take the storage of %{}", taken[i - 1].second,
                     taken[i].second, taken[i].first);
    std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (size_t i = 1; i < taken.size(); ++i)
      if (taken[i].second == taken[i - 1].second)
        findings.add(all[begin].node, "output {} must lie in the storage of two inputs", taken[i].second);
  }
}

namespace {

// The last use of a value in one program, or null.
const Use* last_use(const CheckedGraph& checked, ValueId value, int32_t program) {
  const RegionId region = checked.graph.programs[static_cast<size_t>(program)].region;
  const int32_t end = checked.index.region(region).end;
  const std::span<const Use> uses = checked.index.uses(value);
  const auto after =
      std::upper_bound(uses.begin(), uses.end(), end, [](int32_t time, const Use& use) { return time < use.time; });
  return after == uses.begin() ? nullptr : &*(after - 1);
}

}  // namespace

void check_overwritten_dead(const CheckedGraph& checked, Findings& findings) {
  const GraphIndex& index = checked.index;
  for (const Overwrite& overwrite : checked.overwrites) {
    const NodePlace& place = index.node(overwrite.node);
    const RegionPlace& region = index.region(place.region);
    // A persistent value is the run's own state: a loop may update it for its next iteration to read.
    const bool outer =
        !checked.graph.value(overwrite.value).persistent && index.definition(overwrite.value).region != place.region;
    if (outer) {
      findings.add(overwrite.node, "the loop overwrites %{} from outside, which its next trip reads: carry it",
                   overwrite.value);
      continue;
    }
    const Use* last = last_use(checked, overwrite.value, region.program);
    if (!last || last->time <= place.time) continue;
    const std::string reader =
        last->node != kNone ? print_node(checked.graph, last->node) : std::string("the end of a region");
    findings.add(overwrite.node, "%{} is overwritten and read afterwards by: {}", overwrite.value, reader);
  }
}

void check_loop_storage(const CheckedGraph& checked, Findings& findings) {
  const Graph& graph = checked.graph;
  const GraphIndex& index = checked.index;
  // The value whose storage each value uses within its region. Params are roots.
  std::vector<ValueId> roots(graph.values.size());
  for (size_t i = 0; i < roots.size(); ++i) roots[i] = static_cast<ValueId>(i);
  for (const Overwrite& overwrite : checked.overwrites)
    roots[static_cast<size_t>(graph.node(overwrite.node).outputs[static_cast<size_t>(overwrite.output)])] =
        roots[static_cast<size_t>(overwrite.value)];
  std::vector<ValueId> taken;
  for (NodeId id : index.order()) {
    const Node& node = graph.node(id);
    if (!is_loop(node)) continue;
    const Region& body = graph.region(node.body);
    taken.clear();
    for (size_t i = 0; i < body.results.size(); ++i) {
      const ValueId root = roots[static_cast<size_t>(body.results[i])];
      taken.push_back(root);
      const Definition& definition = index.definition(root);
      if (root == body.params[i]) continue;
      if (graph.value(root).persistent || !index.encloses(node.body, definition.region))
        findings.add(id, "result %{} lies in the storage of %{} from outside the loop", body.results[i], root);
      else if (definition.region == node.body && definition.node == kNone)
        findings.add(id, "result %{} lies in the storage of param %{}, not of %{}", body.results[i], root,
                     body.params[i]);
    }
    std::sort(taken.begin(), taken.end());
    const auto twice = std::adjacent_find(taken.begin(), taken.end());
    if (twice != taken.end()) findings.add(id, "two results lie in the storage of %{}", *twice);
  }
}

namespace {

bool is_start(const Node& node) { return starts_transfer(node.op->kind()); }
bool is_wait(const Node& node) { return node.op->kind() == OpKind::wait; }

}  // namespace

void check_host_access(const CheckedGraph& checked, Findings& findings) {
  const Graph& graph = checked.graph;
  for (NodeId id : checked.index.order()) {
    const Node& node = graph.node(id);
    if (is_loop(node) || is_start(node) || is_wait(node)) continue;
    for (ValueId value : node.inputs)
      if (graph.value(value).type.tier != Tier::device)
        findings.add(id, "%{} lies on the {}, which only copies reach", value, tier_name(graph.value(value).type.tier));
  }
}

void check_start_has_wait(const CheckedGraph& checked, Findings& findings) {
  for (NodeId id : checked.index.order()) {
    const Node& node = checked.graph.node(id);
    if (!is_start(node)) continue;
    NodeId waited = kNone;
    for (ValueId output : node.outputs) {
      const std::span<const Use> uses = checked.index.uses(output);
      if (uses.size() != 1) {
        findings.add(id, "output %{} is read {} times, not once by a wait", output, uses.size());
        continue;
      }
      const Use& use = uses.front();
      if (use.node == kNone || !is_wait(checked.graph.node(use.node)))
        findings.add(id, "output %{} is read before a wait, by {}", output,
                     use.node == kNone ? std::string("the end of a region") : print_node(checked.graph, use.node));
      else if (use.region != checked.index.node(id).region)
        findings.add(id, "output %{} is waited for in another region", output);
      else if (waited != kNone && waited != use.node)
        findings.add(id, "two waits read its outputs");
      else
        waited = use.node;
    }
  }
}

void check_start_source_unchanged(const CheckedGraph& checked, Findings& findings) {
  const GraphIndex& index = checked.index;
  for (const Overwrite& overwrite : checked.overwrites) {
    const int32_t time = index.node(overwrite.node).time;
    for (const Use& use : index.uses(overwrite.value)) {
      if (use.time >= time) break;
      if (use.node == kNone || !is_start(checked.graph.node(use.node))) continue;
      for (ValueId output : checked.graph.node(use.node).outputs)
        for (const Use& wait : index.uses(output))
          if (wait.time > time)
            findings.add(overwrite.node, "%{} is overwritten while {} is in flight", overwrite.value,
                         print_node(checked.graph, use.node));
    }
  }
}

}  // namespace headroom
