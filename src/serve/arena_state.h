// The server's current memory, for the page at /.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/serving.h"
#include "generate/scheduler.h"

namespace headroom {

struct ArenaState {
  const char* state = "loading";    // loading, ready, ending
  std::vector<std::string> models;  // names that requests may use
  bool chat_template = false;
  int64_t arena_high_water = 0;  // bytes
  SchedulerCounts counts;
};

// One JSON object: the state, the plan's regions, the KV pool's blocks, requests and tokens so far. Sizes are in bytes.
std::string arena_json(const ServingPlan& plan, const ArenaState& now);

}  // namespace headroom
