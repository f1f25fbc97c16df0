#include "memory/exact.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "memory/canonical_search.h"
#include "memory/greedy.h"
#include "memory/random_steps.h"
#include "memory/timeline.h"

namespace headroom {
namespace {

constexpr size_t kMostItems = 2048;  // bounds the memory for pairs of items and the depth of the recursion
constexpr int64_t kFirstBudget = 500;

// Which of several items at the same height is tried first. The search takes each in turn: they solve different
// timelines.
enum class Preference { crowding_width, area, width, size, crowding_area };
constexpr int kPreferences = 5;

std::vector<double> make_priority(const Timeline& timeline, const std::vector<int64_t>& crowding, Preference preference,
                                  double noise, RandomSteps& random) {
  std::vector<double> priority(timeline.items.size());
  for (size_t i = 0; i < priority.size(); ++i) {
    const TimelineItem& item = timeline.items[i];
    const auto width = static_cast<double>(item.upper - item.lower);
    const auto size = static_cast<double>(item.size);
    const auto crowd = static_cast<double>(crowding[i]);
    const double factor = 1.0 + noise * random.fraction();
    switch (preference) {
      case Preference::crowding_width:
        priority[i] = crowd * 1e9 + crowd * width * factor;
        break;
      case Preference::area:
        priority[i] = width * size * factor;
        break;
      case Preference::width:
        priority[i] = width * factor;
        break;
      case Preference::size:
        priority[i] = size * factor;
        break;
      case Preference::crowding_area:
        priority[i] = crowd * 1e9 + width * size * factor;
        break;
    }
  }
  return priority;
}

// Restarts the search with other preferences and growing node limits until it finishes or `node_limit` is reached. The
// time to a solution varies by orders of magnitude between preferences, so many short runs beat a long one.
CanonicalSearch::Outcome search_with_restarts(const Timeline& timeline, CanonicalSearch& search, int64_t node_limit,
                                              int64_t& nodes) {
  const std::vector<int64_t> crowding = search.crowding();
  RandomSteps random(0x7061636bULL);
  for (uint32_t attempt = 0; nodes < node_limit; ++attempt) {
    const uint32_t round = attempt / kPreferences;
    const auto preference = static_cast<Preference>(attempt % kPreferences);
    const auto priority = make_priority(timeline, crowding, preference, round == 0 ? 0.0 : 0.3, random);
    const int64_t budget = kFirstBudget << std::countr_zero(round + 1);
    const auto outcome = search.run(priority, std::min(budget, node_limit - nodes));
    nodes += search.nodes();
    if (outcome != CanonicalSearch::Outcome::gave_up) return outcome;
  }
  return CanonicalSearch::Outcome::gave_up;
}

// The items of nonzero size; `origin` receives their buffers' indices.
Timeline without_empty(const Timeline& timeline, std::vector<size_t>& origin) {
  Timeline solid;
  solid.slot_starts = timeline.slot_starts;
  for (size_t i = 0; i < timeline.items.size(); ++i) {
    if (timeline.items[i].size == 0) continue;
    solid.items.push_back(timeline.items[i]);
    origin.push_back(i);
  }
  return solid;
}

ExactResult decide(const Timeline& timeline, int64_t capacity, int64_t node_limit) {
  ExactResult result;
  std::vector<size_t> origin;
  const Timeline solid = without_empty(timeline, origin);
  if (solid.items.size() > kMostItems) return result;
  CanonicalSearch search(solid, capacity);
  const auto outcome = search_with_restarts(solid, search, node_limit, result.nodes);
  if (outcome == CanonicalSearch::Outcome::none) result.status = ExactStatus::infeasible;
  if (outcome != CanonicalSearch::Outcome::found) return result;
  result.status = ExactStatus::solved;
  result.assignment.offsets.assign(timeline.items.size(), 0);
  for (size_t k = 0; k < origin.size(); ++k) {
    result.assignment.offsets[origin[k]] = search.offsets()[k];
    result.assignment.peak = std::max(result.assignment.peak, search.offsets()[k] + solid.items[k].size);
  }
  return result;
}

Timeline unpinned_timeline(std::span<const Buffer> buffers, int64_t alignment) {
  Timeline timeline = make_timeline(buffers, alignment);
  if (timeline.has_pins) {
    throw Error(ErrorKind::usage, "the exact search does not take pinned buffers",
                "use assign_offsets(), or drop the pins");
  }
  return timeline;
}

}  // namespace

ExactResult pack_within(std::span<const Buffer> buffers, int64_t alignment, int64_t capacity, int64_t node_limit) {
  return decide(unpinned_timeline(buffers, alignment), capacity, node_limit);
}

ExactResult assign_optimally(std::span<const Buffer> buffers, int64_t alignment, int64_t node_limit) {
  const Timeline timeline = unpinned_timeline(buffers, alignment);
  Occupancy occupancy(timeline);
  const GreedyPass pass = *place_in_order(timeline, make_order(timeline, OrderRule::size_then_start), FitRule::first, 0,
                                          std::numeric_limits<int64_t>::max(), occupancy);
  ExactResult best{ExactStatus::solved, {pass.offsets, pass.peak}, 0};
  const std::vector<int64_t> live = live_bytes(timeline);
  int64_t low = live.empty() ? 0 : *std::max_element(live.begin(), live.end());  // no peak is lower
  for (int64_t goal = low; low < best.assignment.peak; goal = low + (best.assignment.peak - low) / 2) {
    ExactResult step = decide(timeline, goal, node_limit - best.nodes);
    best.nodes += step.nodes;
    if (step.status == ExactStatus::node_limit) {
      best.status = ExactStatus::node_limit;
      break;
    }
    if (step.status == ExactStatus::infeasible) low = goal + 1;
    if (step.status == ExactStatus::solved) best.assignment = std::move(step.assignment);
  }
  return best;
}

}  // namespace headroom
