// Improves a greedy assignment by blaming what ended too high (squeaky wheel optimisation, Joslin and Clements 1999).
#pragma once

#include <cstdint>

#include "memory/greedy.h"

namespace headroom {

struct SqueakyWheelOptions {
  int64_t goal = 0;        // stop at peak <= goal
  int64_t iterations = 0;  // passes
  int64_t work_limit = 0;  // stop once occupancy.work() is above this
  FitRule rule = FitRule::first;
};

// Each iteration moves about half of the items that ended above the goal forward by 20-80 % of their position in the
// order, swaps a few neighbours and assigns again; an order up to 0.2 % worse than the current one is kept. The moves
// come from a fixed seed. Returns the best pass found, `start` if none is better.
GreedyPass squeaky_wheel(const Timeline& timeline, PlacementOrder order, GreedyPass start,
                         const SqueakyWheelOptions& options, Occupancy& occupancy);

}  // namespace headroom
