#include "memory/greedy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace headroom {
namespace {

// By item: the most bytes live in one of its slots.
std::vector<int64_t> crowding(const Timeline& timeline) {
  // levels[k][slot] is the maximum over the 2^k slots from `slot` on.
  std::vector<std::vector<int64_t>> levels{live_bytes(timeline)};
  for (size_t span = 1; span * 2 <= levels[0].size(); span *= 2) {
    const std::vector<int64_t>& narrow = levels.back();
    std::vector<int64_t> wide(narrow.size() - span);
    for (size_t slot = 0; slot < wide.size(); ++slot) wide[slot] = std::max(narrow[slot], narrow[slot + span]);
    levels.push_back(std::move(wide));
  }
  std::vector<int64_t> result;
  for (const TimelineItem& item : timeline.items) {
    const auto duration = static_cast<uint32_t>(item.upper - item.lower);
    const auto level = static_cast<size_t>(std::bit_width(duration) - 1);
    const std::vector<int64_t>& maxima = levels[level];
    result.push_back(std::max(maxima[static_cast<size_t>(item.lower)],
                              maxima[static_cast<size_t>(item.upper) - (size_t{1} << level)]));
  }
  return result;
}

// Sort keys, compared lexicographically, smaller first.
std::array<double, 3> order_key(const TimelineItem& item, OrderRule rule, int64_t crowd) {
  const auto size = static_cast<double>(item.size);
  const auto duration = static_cast<double>(item.upper - item.lower);
  switch (rule) {
    case OrderRule::duration:
      return {-duration, -size};
    case OrderRule::size_then_start:
      return {-size, static_cast<double>(item.lower)};
    case OrderRule::size_then_end:
      return {-size, -static_cast<double>(item.upper), -duration};
    case OrderRule::size_then_duration:
      return {-size, -duration};
    case OrderRule::area:
      return {-size * duration, -duration};
    case OrderRule::end_descending:
      return {-static_cast<double>(item.upper), -duration};
    case OrderRule::start:
      return {static_cast<double>(item.lower), -duration};
    case OrderRule::crowding_then_size:
      return {-static_cast<double>(crowd), -size};
    case OrderRule::crowding_then_end:
      return {-static_cast<double>(crowd), -static_cast<double>(item.upper), -duration};
    case OrderRule::crowding_then_early_end:
      return {-static_cast<double>(crowd), static_cast<double>(item.upper), -duration};
  }
  return {0, 0};
}

}  // namespace

PlacementOrder make_order(const Timeline& timeline, OrderRule rule) {
  struct Keyed {
    std::array<double, 3> key;
    int32_t index;
  };
  const bool crowded = rule >= OrderRule::crowding_then_size;
  const std::vector<int64_t> crowds = crowded ? crowding(timeline) : std::vector<int64_t>(timeline.items.size(), 0);
  std::vector<Keyed> keyed(timeline.items.size());
  for (size_t i = 0; i < keyed.size(); ++i) {
    keyed[i] = {order_key(timeline.items[i], rule, crowds[i]), static_cast<int32_t>(i)};
  }
  std::sort(keyed.begin(), keyed.end(),
            [](const Keyed& a, const Keyed& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; });
  PlacementOrder order(keyed.size());
  for (size_t i = 0; i < keyed.size(); ++i) order[i] = keyed[i].index;
  return order;
}

std::optional<GreedyPass> place_in_order(const Timeline& timeline, const PlacementOrder& order, FitRule rule,
                                         int64_t target, int64_t limit, Occupancy& occupancy) {
  occupancy.clear();
  GreedyPass pass;
  pass.offsets.assign(timeline.items.size(), 0);
  for (size_t i = 0; timeline.has_pins && i < timeline.items.size(); ++i) {
    const TimelineItem& item = timeline.items[i];
    if (item.pinned_offset < 0) continue;
    pass.offsets[i] = item.pinned_offset;
    pass.peak = std::max(pass.peak, item.pinned_offset + item.size);
    occupancy.place(item, item.pinned_offset);
  }
  if (pass.peak > limit) return std::nullopt;
  for (const int32_t index : order) {
    const TimelineItem& item = timeline.items[static_cast<size_t>(index)];
    if (item.pinned_offset >= 0 || item.size == 0) continue;
    const int64_t offset = occupancy.find_gap(item, rule);
    const int64_t end = offset + item.size;
    if (end > limit) return std::nullopt;
    if (end > target) pass.too_high.push_back(index);
    pass.offsets[static_cast<size_t>(index)] = offset;
    pass.peak = std::max(pass.peak, end);
    occupancy.place(item, offset);
  }
  return pass;
}

}  // namespace headroom
