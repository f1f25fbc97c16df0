#include "planner/frontier.h"

#include <algorithm>
#include <tuple>

namespace headroom {

std::vector<Rung> unbeaten(std::vector<Rung> rungs) {
  std::stable_sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) {
    return std::tie(a.peak_bytes, a.host_bytes, a.step_seconds) < std::tie(b.peak_bytes, b.host_bytes, b.step_seconds);
  });
  std::vector<Rung> kept;
  for (Rung& rung : rungs) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const Rung& other) {
      return other.host_bytes <= rung.host_bytes && other.step_seconds <= rung.step_seconds;
    });
    if (!beaten) kept.push_back(std::move(rung));
  }
  return kept;
}

std::vector<Rung> unbeaten_within(const std::vector<Rung>& rungs, int64_t host_bytes) {
  std::vector<Rung> kept;
  for (const Rung& rung : rungs)
    if ((host_bytes == 0 || rung.host_bytes <= host_bytes) &&
        (kept.empty() || rung.step_seconds < kept.back().step_seconds))
      kept.push_back(rung);
  return kept;
}

}  // namespace headroom
