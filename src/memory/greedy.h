// Greedy assignment: orders in which buffers are placed, and one pass that places them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/occupancy.h"
#include "memory/timeline.h"

namespace headroom {

using PlacementOrder = std::vector<int32_t>;  // item indices, each once

enum class OrderRule {
  duration,                // longest-lived first, larger first among equals
  size_then_start,         // largest first, earliest start first among equals
  size_then_end,           // largest first, latest end first among equals
  size_then_duration,      // largest first, longer-lived first among equals
  area,                    // largest size x duration first
  end_descending,          // latest end first
  start,                   // earliest start first
  crowding_then_size,      // most bytes live at the same time first, larger first among equals
  crowding_then_end,       // most bytes live at the same time first, latest end first among equals
  crowding_then_early_end  // most bytes live at the same time first, earliest end first among equals
};
inline constexpr OrderRule kAllOrderRules[] = {OrderRule::duration,
                                               OrderRule::size_then_start,
                                               OrderRule::size_then_end,
                                               OrderRule::size_then_duration,
                                               OrderRule::area,
                                               OrderRule::end_descending,
                                               OrderRule::start,
                                               OrderRule::crowding_then_size,
                                               OrderRule::crowding_then_end,
                                               OrderRule::crowding_then_early_end};

// The items sorted by the rule; remaining ties go by index.
PlacementOrder make_order(const Timeline& timeline, OrderRule rule);

// The result of a greedy pass.
struct GreedyPass {
  std::vector<int64_t> offsets;   // of the items placed
  int64_t peak = 0;               // highest end
  std::vector<int32_t> too_high;  // items that end above the target, in placement order
};

// Clears `occupancy`, places pinned items at their pins, then the others in this order by the rule. Returns nothing as
// soon as an item would end above `limit`.
std::optional<GreedyPass> place_in_order(const Timeline& timeline, const PlacementOrder& order, FitRule rule,
                                         int64_t target, int64_t limit, Occupancy& occupancy);

}  // namespace headroom
