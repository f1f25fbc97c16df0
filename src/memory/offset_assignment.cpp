#include "memory/offset_assignment.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "memory/exact.h"
#include "memory/greedy.h"
#include "memory/squeaky_wheel.h"
#include "memory/timeline.h"

namespace headroom {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr int64_t kWorkLimit = 120'000'000;  // entries visited per component: below a second
constexpr size_t kExactItems = 600;
constexpr int kExactSteps = 6;

// The portfolio, most promising first on training timelines.
struct Strategy {
  OrderRule order;
  FitRule fit;
};
constexpr Strategy kPortfolio[] = {
    {OrderRule::crowding_then_end, FitRule::first},
    {OrderRule::size_then_start, FitRule::first},
    {OrderRule::crowding_then_size, FitRule::first},
    {OrderRule::crowding_then_early_end, FitRule::first},
    {OrderRule::end_descending, FitRule::first},
    {OrderRule::start, FitRule::best},
    {OrderRule::area, FitRule::first},
    {OrderRule::duration, FitRule::best},
    {OrderRule::crowding_then_size, FitRule::best},
    {OrderRule::size_then_duration, FitRule::first},
    {OrderRule::size_then_start, FitRule::best},
};

// Items of the whole timeline that can be assigned independently of the others.
struct Component {
  Timeline timeline;
  std::vector<int32_t> origin;  // item of the whole timeline
  int64_t bound = 0;            // no peak of the component is lower
};

void check_pins(const Timeline& timeline, std::span<const Buffer> buffers) {
  Occupancy occupancy(timeline);
  for (size_t i = 0; i < timeline.items.size(); ++i) {
    const TimelineItem& item = timeline.items[i];
    if (item.pinned_offset < 0) continue;
    if (!occupancy.is_free(item, item.pinned_offset)) {
      throw Error(
          ErrorKind::usage,
          fmt::format("buffer {} is pinned to {}, over a buffer pinned before", buffers[i].id, item.pinned_offset),
          "pin buffers that live together to disjoint ranges");
    }
    occupancy.place(item, item.pinned_offset);
  }
}

int64_t component_bound(const Timeline& timeline) {
  const std::vector<int64_t> live = live_bytes(timeline);
  int64_t bound = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
  for (const TimelineItem& item : timeline.items) {
    if (item.pinned_offset >= 0) bound = std::max(bound, item.pinned_offset + item.size);
  }
  return bound;
}

// Splits the wanted items into components at slot boundaries that none of them is live across, the largest bound first.
std::vector<Component> make_components(const Timeline& whole, const std::vector<int32_t>& wanted) {
  const auto slots = static_cast<size_t>(whole.slot_count());
  std::vector<int32_t> change(slots + 1, 0);
  for (const int32_t index : wanted) {
    const TimelineItem& item = whole.items[static_cast<size_t>(index)];
    ++change[static_cast<size_t>(item.lower) + 1];  // counts items that are live across the boundary before a slot
    --change[static_cast<size_t>(item.upper)];
  }
  std::vector<int32_t> component_of(slots, 0);
  std::vector<int32_t> first_slot;
  for (size_t slot = 0, crossing = 0; slot < slots; ++slot) {
    crossing += static_cast<size_t>(change[slot]);
    if (crossing == 0) first_slot.push_back(static_cast<int32_t>(slot));
    component_of[slot] = static_cast<int32_t>(first_slot.size()) - 1;
  }
  first_slot.push_back(static_cast<int32_t>(slots));
  std::vector<Component> all(first_slot.size() - 1);
  for (const int32_t index : wanted) {
    TimelineItem item = whole.items[static_cast<size_t>(index)];
    Component& component = all[static_cast<size_t>(component_of[static_cast<size_t>(item.lower)])];
    const int32_t start = first_slot[static_cast<size_t>(component_of[static_cast<size_t>(item.lower)])];
    item.lower -= start;
    item.upper -= start;
    component.timeline.items.push_back(item);
    component.timeline.has_pins = component.timeline.has_pins || item.pinned_offset >= 0;
    component.origin.push_back(index);
  }
  std::vector<Component> components;
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].origin.empty()) continue;
    all[k].timeline.slot_starts.assign(whole.slot_starts.begin() + first_slot[k],
                                       whole.slot_starts.begin() + first_slot[k + 1]);
    all[k].bound = component_bound(all[k].timeline);
    components.push_back(std::move(all[k]));
  }
  std::stable_sort(components.begin(), components.end(),
                   [](const Component& a, const Component& b) { return a.bound > b.bound; });
  return components;
}

// Searches for an assignment within the goal; if there is none, for one between the goal and the best known.
void improve_exactly(const Component& component, const AssignmentOptions& options, int64_t goal, GreedyPass& best) {
  std::vector<Buffer> buffers;
  for (const TimelineItem& item : component.timeline.items) {
    buffers.push_back({static_cast<int64_t>(buffers.size()), item.lower, item.upper, item.size, -1});
  }
  int64_t nodes = options.exact_nodes;
  int64_t low = std::max(goal, component.bound);
  int64_t capacity = low;
  for (int step = 0; step < kExactSteps && nodes > 0 && capacity < best.peak; ++step) {
    const int64_t share = options.capacity > 0 ? nodes : step == 0 ? (nodes + 1) / 2 : (nodes + 2) / 3;
    const ExactResult result = pack_within(buffers, 1, capacity, share);
    nodes -= result.nodes;
    if (result.status == ExactStatus::solved) {
      best.offsets = result.assignment.offsets;
      best.peak = result.assignment.peak;
      if (best.peak <= goal) return;
    } else {
      low = capacity;
    }
    if (options.capacity > 0 || best.peak - low <= component.bound / 1000) return;
    capacity = low + (best.peak - low) / 2;
  }
}

// Starts the squeaky wheel from the best order and from two others: when one is stuck, another often is not.
void improve_by_blame(const Component& component, const AssignmentOptions& options, int64_t goal,
                      Strategy best_strategy, Occupancy& occupancy, GreedyPass& best) {
  const Timeline& timeline = component.timeline;
  const Strategy starts[] = {
      best_strategy, {OrderRule::crowding_then_early_end, FitRule::first}, {OrderRule::size_then_end, FitRule::first}};
  int64_t iterations = options.effort_iterations;
  for (size_t k = 0; k < std::size(starts) && best.peak > goal && occupancy.work() <= kWorkLimit; ++k) {
    const auto share = iterations / static_cast<int64_t>(std::size(starts) - k);
    iterations -= share;
    PlacementOrder order = make_order(timeline, starts[k].order);
    auto start = place_in_order(timeline, order, starts[k].fit, goal, kNoLimit, occupancy);
    const SqueakyWheelOptions squeaky{goal, share, kWorkLimit, starts[k].fit};
    GreedyPass pass = squeaky_wheel(timeline, std::move(order), std::move(*start), squeaky, occupancy);
    if (pass.peak < best.peak) best = std::move(pass);
  }
}

GreedyPass assign_component(const Component& component, const AssignmentOptions& options, int64_t goal) {
  const Timeline& timeline = component.timeline;
  Occupancy occupancy(timeline);
  std::optional<GreedyPass> best;
  Strategy best_strategy = kPortfolio[0];
  for (const Strategy& strategy : kPortfolio) {
    if (best && (best->peak <= goal || occupancy.work() > kWorkLimit)) break;
    auto pass = place_in_order(timeline, make_order(timeline, strategy.order), strategy.fit, goal,
                               best ? best->peak - 1 : kNoLimit, occupancy);
    if (!pass) continue;
    best = std::move(pass);
    best_strategy = strategy;
    if (goal < component.bound) break;  // the goal cannot be reached
  }
  if (best->peak <= goal || goal < component.bound) return *best;
  if (options.effort_iterations > 0) improve_by_blame(component, options, goal, best_strategy, occupancy, *best);
  if (best->peak > goal && options.exact_nodes > 0 && !timeline.has_pins && timeline.items.size() <= kExactItems) {
    improve_exactly(component, options, goal, *best);
  }
  return *best;
}

// The target peak: the capacity, or good_enough times the lower bound.
int64_t target_peak(const AssignmentOptions& options, int64_t bound) {
  if (options.capacity > 0) return options.capacity;
  const double excess = static_cast<double>(bound) * (options.good_enough - 1.0);
  if (!(excess > 0)) return bound;
  return bound + static_cast<int64_t>(std::min(excess, static_cast<double>(int64_t{1} << 60)));
}

}  // namespace

OffsetAssignment assign_offsets(std::span<const Buffer> buffers, const AssignmentOptions& options) {
  const Timeline whole = make_timeline(buffers, options.alignment);
  if (whole.has_pins) check_pins(whole, buffers);
  OffsetAssignment assignment;
  assignment.offsets.assign(buffers.size(), 0);
  int64_t base = 0;  // end of the buffers that live all the time
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < whole.items.size(); ++i) {
    const TimelineItem& item = whole.items[i];
    if (item.size == 0 && item.pinned_offset < 0) continue;
    if (!whole.has_pins && item.lower == 0 && item.upper == whole.slot_count()) {
      assignment.offsets[i] = base;
      base += item.size;
    } else {
      wanted.push_back(static_cast<int32_t>(i));
    }
  }
  assignment.peak = base;
  const std::vector<Component> components = make_components(whole, wanted);
  int64_t goal = target_peak(options, base + (components.empty() ? 0 : components.front().bound)) - base;
  for (const Component& component : components) {
    const GreedyPass pass = assign_component(component, options, goal);
    for (size_t k = 0; k < component.origin.size(); ++k) {
      assignment.offsets[static_cast<size_t>(component.origin[k])] = base + pass.offsets[k];
    }
    assignment.peak = std::max(assignment.peak, base + pass.peak);
    goal = std::max(goal, pass.peak);  // a lower peak elsewhere would not help
  }
  return assignment;
}

}  // namespace headroom
