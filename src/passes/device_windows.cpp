#include "passes/device_windows.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/graph_index.h"
#include "ir/rewrite.h"
#include "ir/tier_bytes.h"
#include "ops/registry.h"
#include "passes/pass.h"

namespace headroom {
namespace {

// A value of a lower tier while a unit uses it.
struct Window {
  ValueId value = kNone;   // in the lower tier, as the unit's nodes first name it
  int32_t first = 0;       // position of the first node that needs it
  int32_t last = 0;        // position of the last one
  bool loads = true;       // its contents are needed
  ValueId newest = kNone;  // on the device: the newest value made in its place; kNone while it is only read
};

struct Unit {
  int32_t begin = 0;  // positions [begin, end)
  int32_t end = 0;
  std::vector<Window> windows;       // in the order of their first use
  std::map<ValueId, ValueId> roots;  // a value that the unit makes in a window's place -> the window's

  // The window that holds `id`, or null.
  Window* window_of(ValueId id) {
    const auto at = roots.find(id);
    const ValueId first = at == roots.end() ? id : at->second;
    for (Window& window : windows)
      if (window.value == id || window.value == first) return &window;
    return nullptr;
  }
};

class RegionWindows {
 public:
  RegionWindows(Graph& graph, RegionId region, int64_t depth, const Overwrites& overwrites)
      : graph_(graph), region_(region), depth_(depth), overwrites_(overwrites) {}

  void run() {
    find_units();
    if (std::all_of(units_.begin(), units_.end(), [](const Unit& unit) { return unit.windows.empty(); })) return;
    for (int32_t unit = 0; unit < static_cast<int32_t>(units_.size()); ++unit)
      if (has_windows(unit)) first_window_.emplace(segment_[static_cast<size_t>(unit)], unit);
    const std::vector<NodeId> nodes = graph_.region(region_).nodes;
    made_at_.assign(graph_.values.size(), kNone);
    moved_.assign(graph_.values.size(), kNone);
    for (size_t i = 0; i < nodes.size(); ++i)
      for (ValueId output : graph_.node(nodes[i]).outputs)
        made_at_[static_cast<size_t>(output)] = static_cast<int32_t>(i);
    for (size_t at = 0; at < units_.size(); ++at) rewrite(static_cast<int32_t>(at), nodes);
    for (ValueId& result : graph_.region(region_).results) result = newest(result);
    place();
  }

 private:
  const Value& value(ValueId id) const { return graph_.value(id); }
  bool below(ValueId id) const { return value(id).type.tier != Tier::device; }
  ValueId newest(ValueId id) const {
    const int32_t moved = known(moved_, id);
    return moved == kNone ? id : moved;
  }
  // Of a value that was in the graph before; kNone for those of the copies.
  static int32_t known(const std::vector<int32_t>& by_value, ValueId id) {
    return static_cast<size_t>(id) < by_value.size() ? by_value[static_cast<size_t>(id)] : kNone;
  }

  void find_units() {
    const std::vector<int32_t> unit_of = units_of(graph_, region_);
    const std::vector<NodeId>& nodes = graph_.region(region_).nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int32_t position = static_cast<int32_t>(i);
      if (static_cast<size_t>(unit_of[i]) >= units_.size()) {
        units_.push_back({position, position, {}, {}});
        segment_.push_back(segments_);
      }
      units_.back().end = position + 1;
      const Node& node = graph_.node(nodes[i]);
      if (is_loop(node)) segment_.back() = ++segments_, ++segments_;
      if (is_transfer(node) || is_loop(node)) continue;
      for (ValueId input : node.inputs)
        if (below(input)) need(units_.back(), node, input, position);
    }
  }

  void need(Unit& unit, const Node& node, ValueId id, int32_t position) {
    Window* window = unit.window_of(id);
    if (!window) {
      unit.windows.push_back({id, position, position, !(overwrites_ && overwrites_(node, id)), kNone});
      window = &unit.windows.back();
    }
    window->last = position;
    for (const Alias& alias : must_aliases(node))
      if (node.inputs[static_cast<size_t>(alias.input)] == id)
        unit.roots[node.outputs[static_cast<size_t>(alias.output)]] = window->value;
  }

  // Gives the unit's nodes windows, and the values that they write back a place in the lower tier.
  void rewrite(int32_t at, const std::vector<NodeId>& nodes) {
    Unit& unit = units_[static_cast<size_t>(at)];
    std::unordered_map<ValueId, ValueId> inside;  // replacements for the inputs of the unit's nodes
    for (Window& window : unit.windows) inside[window.value] = open(at, window);
    for (int32_t position = unit.begin; position < unit.end; ++position) {
      const NodeId id = nodes[static_cast<size_t>(position)];
      const bool needs = !is_transfer(graph_.node(id)) && !is_loop(graph_.node(id));
      for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        ValueId& input = graph_.node(id).inputs[i];
        const auto window = inside.find(input);
        if (needs && window != inside.end())
          input = window->second;
        else
          input = newest(input);
      }
      if (!needs) continue;
      const std::optional<RowSlice> slice = row_slice(graph_.node(id).attrs);
      if (slice) infer_again(graph_, id);  // a value written in a window of a slice is a slice
      for (ValueId output : graph_.node(id).outputs) {
        if (!unit.roots.contains(output)) continue;  // values that a node allocates stay on the device
        if (!slice) graph_.value(output).type.tier = Tier::device;
        Window* window = unit.window_of(output);
        window->newest = output;
        inside[output] = output;
      }
    }
    for (Window& window : unit.windows)
      if (window.newest != kNone) close(at, window, nodes);
  }

  // Copies to the device, `depth` units ahead, or only allocates there. Returns the value on the device.
  ValueId open(int32_t at, const Window& window) {
    const Unit& unit = units_[static_cast<size_t>(at)];
    const NodeId user = graph_.region(region_).nodes[static_cast<size_t>(window.first)];
    const int32_t block = graph_.node(user).block;
    const ValueId source = newest(window.value);
    const std::optional<RowSlice> slice = row_slice(graph_.node(user).attrs);
    if (!window.loads) {
      const Type type = slice ? rows_of(value(source).type, *slice) : value(source).type;
      const NodeId room = make_node(graph_, find_op("allocate"), {},
                                    {{"dtype", std::string(dtype_name(type.dtype))}, {"dims", dims_text(type)}}, block,
                                    graph_.node(user).stage, value(source).role);
      starts_.push_back({window.first, room});
      return result_of(graph_.node(room));
    }
    const int32_t ahead = ahead_of(at);
    int32_t position = units_[static_cast<size_t>(ahead)].begin;
    // A value that an earlier unit wrote, or a copy brought there, must have arrived.
    if (wait_before(at, source)) position = unit.begin;
    position = std::max(position, known(made_at_, source) + 1);
    const Copy copy = make_copy(graph_, source, Tier::device, block, kNone, slice);
    starts_.push_back({std::min(position, window.first), copy.start});
    waits_.push_back({window.first, copy.wait});
    return copy.arrived;
  }

  // Copies the unit's results back to their tier; the copies are waited for `depth` units later.
  void close(int32_t at, Window& window, const std::vector<NodeId>& nodes) {
    const NodeId writer = nodes[static_cast<size_t>(window.last)];
    const ValueId over = newest(window.value);
    wait_before(at, over);
    const Copy copy = make_copy(graph_, window.newest, value(over).type.tier, graph_.node(writer).block, over,
                                row_slice(graph_.node(writer).attrs));
    stores_.push_back({window.last + 1, copy.start});
    written_by_[copy.arrived] = written_.size();
    written_.push_back({copy.wait, behind(at)});
    for (const auto& [made, root] : units_[static_cast<size_t>(at)].roots)
      if (root == window.value) moved_[static_cast<size_t>(made)] = copy.arrived;
  }

  // Before the unit, waits for what an earlier one copied back; false if none did.
  bool wait_before(int32_t at, ValueId value) {
    const auto wrote = written_by_.find(value);
    if (wrote == written_by_.end()) return false;
    int32_t& waited = written_[wrote->second].waited_after;
    waited = std::min(waited, at - 1);
    return true;
  }

  // The unit `depth` units before this one in the same stretch between loops, or the stretch's first. Units without
  // windows count if no unit with windows comes before.
  int32_t ahead_of(int32_t at) const {
    const int32_t first = first_window_.at(segment_[static_cast<size_t>(at)]);
    int64_t left = depth_;
    int32_t ahead = at;
    while (left > 0 && ahead > 0 && same_segment(ahead - 1, at)) {
      --ahead;
      if (ahead < first || has_windows(ahead)) --left;
    }
    return ahead;
  }
  // The unit `depth` units with windows after this one, or the stretch's last one with windows.
  int32_t behind(int32_t at) const {
    int64_t left = depth_;
    int32_t behind = at;
    for (int32_t next = at + 1; left > 0 && next < static_cast<int32_t>(units_.size()) && same_segment(next, at);
         ++next)
      if (has_windows(next)) behind = next, --left;
    return behind;
  }
  bool has_windows(int32_t unit) const { return !units_[static_cast<size_t>(unit)].windows.empty(); }
  bool same_segment(int32_t a, int32_t b) const {
    return segment_[static_cast<size_t>(a)] == segment_[static_cast<size_t>(b)];
  }

  // At one position: copies back start, then copies that end there are waited for, new copies start, and last those
  // that are needed next are waited for.
  void place() {
    std::vector<Insertion> all = stores_;
    for (const Written& written : written_)
      all.push_back({units_[static_cast<size_t>(written.waited_after)].end, written.wait});
    all.insert(all.end(), starts_.begin(), starts_.end());
    all.insert(all.end(), waits_.begin(), waits_.end());
    insert_all(graph_, region_, std::move(all));
  }

  struct Written {
    NodeId wait = kNone;
    int32_t waited_after = 0;  // unit
  };

  Graph& graph_;
  RegionId region_;
  int64_t depth_;
  const Overwrites& overwrites_;
  std::vector<Unit> units_;
  std::vector<int32_t> segment_;  // by unit: the stretch between loops that contains it
  int32_t segments_ = 0;
  std::map<int32_t, int32_t> first_window_;         // by segment: its first unit with windows
  std::vector<ValueId> moved_;                      // by value: its replacement for later units and the results
  std::vector<int32_t> made_at_;                    // by value: position of the node that makes it
  std::unordered_map<ValueId, size_t> written_by_;  // value that was copied back -> index in written_
  std::vector<Written> written_;
  std::vector<Insertion> stores_, starts_, waits_;
};

}  // namespace

bool is_transfer(const Node& node) { return is_transfer(node.op->kind()); }

namespace {

// The node works on a part of a sequence, with others for the other parts.
bool is_on_part(const Graph& graph, const Node& node) {
  const auto has_part = [&](ValueId id) {
    const std::vector<Dim>& shape = graph.value(id).type.shape;
    return std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.parts > 1; });
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), has_part) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), has_part);
}

}  // namespace

std::vector<int32_t> units_of(const Graph& graph, RegionId region) {
  std::vector<int32_t> units;
  units.reserve(graph.region(region).nodes.size());
  int32_t unit = -1, block = kNone;
  bool backward = false, whole = true;  // whole: nothing may join the unit
  for (NodeId id : graph.region(region).nodes) {
    const Node& node = graph.node(id);
    const bool alone =
        is_loop(node) || node.stage == Stage::update || (node.block == kNone && !is_on_part(graph, node));
    const bool turned = is_backward(node);
    if (unit < 0 || (!is_transfer(node) && (alone || whole || node.block != block || turned != backward))) {
      ++unit;
      block = node.block, backward = turned, whole = alone;
    }
    units.push_back(unit);
  }
  return units;
}

void move_to(Tier tier, Graph& graph, const std::vector<bool>& roots) {
  const GraphIndex index(graph);
  const std::vector<ValueId> root = storage_roots(index);
  for (size_t id = 0; id < root.size(); ++id)
    if (roots[static_cast<size_t>(root[id])]) graph.values[id].type.tier = tier;
}

Copy make_copy(Graph& graph, ValueId source, Tier to, int32_t block, ValueId over,
               const std::optional<RowSlice>& slice) {
  std::vector<ValueId> inputs{source};
  if (over != kNone) inputs.push_back(over);
  Attrs attrs{{"to", std::string(tier_name(to))}};
  if (graph.value(source).type.tier == Tier::disk) attrs.set("from", std::string("disk"));
  if (slice) set_row_slice(attrs, *slice);
  const NodeId start =
      make_node(graph, find_op("copy_start"), inputs, attrs, block, Stage::transfer, graph.value(source).role);
  const NodeId wait = make_node(graph, find_op("wait"), graph.node(start).outputs, {}, block, Stage::transfer);
  return {start, wait, result_of(graph.node(wait))};
}

void open_windows(Graph& graph, int64_t depth, const Overwrites& overwrites) {
  const RegionId regions = static_cast<RegionId>(graph.regions.size());
  for (RegionId region = 0; region < regions; ++region) RegionWindows(graph, region, depth, overwrites).run();
}

}  // namespace headroom
