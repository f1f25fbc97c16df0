// What a device makes of the work of a call.
#pragma once

#include <algorithm>

#include "cost/profile.h"

namespace headroom {

// Seconds of a call that works for `work` seconds by rates measured call behind call. On the CPU the time to begin one
// is added. A GPU takes launches from a queue while it works, and its rates are those of such queues: a call takes its
// work, or the launch where that is slower.
inline double with_launch(const Profile& profile, double work) {
  return profile.facts.is_cpu() ? work + profile.launch_seconds : std::max(work, profile.launch_seconds);
}

}  // namespace headroom
