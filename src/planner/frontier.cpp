#include "planner/frontier.h"

#include <algorithm>
#include <tuple>

namespace headroom {

std::vector<Rung> unbeaten(std::vector<Rung> rungs) {
  std::stable_sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) {
    return std::tie(a.peaks.device, a.peaks.host, a.peaks.disk, a.step_seconds) <
           std::tie(b.peaks.device, b.peaks.host, b.peaks.disk, b.step_seconds);
  });
  std::vector<Rung> kept;
  for (Rung& rung : rungs) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const Rung& other) {
      return other.peaks.host <= rung.peaks.host && other.peaks.disk <= rung.peaks.disk &&
             other.step_seconds <= rung.step_seconds;
    });
    if (!beaten) kept.push_back(std::move(rung));
  }
  return kept;
}

std::vector<Rung> unbeaten_within(const std::vector<Rung>& rungs, const TierBytes& budgets) {
  std::vector<Rung> kept;
  for (const Rung& rung : rungs) {
    const bool within = std::all_of(kLowerTiers.begin(), kLowerTiers.end(), [&](Tier tier) {
      return budgets.of(tier) == 0 || rung.peaks.of(tier) <= budgets.of(tier);
    });
    if (within && (kept.empty() || rung.step_seconds < kept.back().step_seconds)) kept.push_back(rung);
  }
  return kept;
}

}  // namespace headroom
