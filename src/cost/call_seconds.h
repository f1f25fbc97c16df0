// The time of a call from the time of its work.
#pragma once

#include <algorithm>

#include "cost/profile.h"

namespace headroom {

// Seconds of a call whose work takes `work` seconds at rates of back-to-back calls. On the CPU the launch time is
// added. A GPU takes launches from a queue while it works, and its rates include them: a call takes the time of its
// work, or of the launch if that is longer.
inline double with_launch(const Profile& profile, double work) {
  return profile.facts.is_cpu() ? work + profile.launch_seconds : std::max(work, profile.launch_seconds);
}

}  // namespace headroom
