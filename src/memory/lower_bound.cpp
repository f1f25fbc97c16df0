#include "memory/lower_bound.h"

#include <algorithm>

#include "memory/timeline.h"

namespace headroom {

int64_t lower_bound(std::span<const Buffer> buffers, int64_t alignment, int64_t* peak_slot) {
  const Timeline timeline = make_timeline(buffers, alignment);
  const std::vector<int64_t> live = live_bytes(timeline);
  const auto peak = std::max_element(live.begin(), live.end());
  if (peak_slot != nullptr) {
    *peak_slot = live.empty() ? 0 : timeline.slot_starts[static_cast<size_t>(peak - live.begin())];
  }
  return live.empty() ? 0 : *peak;
}

}  // namespace headroom
