// Which rungs no other beats: in the bytes of each tier and in time.
#pragma once

#include <vector>

#include "planner/search.h"

namespace headroom {

// The rungs that no other equals or beats in both tiers and in time, ascending in the device's bytes, then the host's.
std::vector<Rung> unbeaten(std::vector<Rung> rungs);

// Of these, the rungs that no other with at most `host_bytes` (0: any) on the host beats in the device's bytes and
// time: ascending in bytes, strictly descending in time.
std::vector<Rung> unbeaten_within(const std::vector<Rung>& rungs, int64_t host_bytes);

}  // namespace headroom
