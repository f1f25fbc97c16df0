#include "planner/frontier.h"

#include <algorithm>
#include <tuple>

namespace headroom {

std::vector<FrontierPoint> unbeaten(std::vector<FrontierPoint> points) {
  std::stable_sort(points.begin(), points.end(), [](const FrontierPoint& a, const FrontierPoint& b) {
    return std::tie(a.peaks.device, a.peaks.host, a.peaks.disk, a.step_seconds) <
           std::tie(b.peaks.device, b.peaks.host, b.peaks.disk, b.step_seconds);
  });
  std::vector<FrontierPoint> kept;
  for (FrontierPoint& point : points) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const FrontierPoint& other) {
      return other.peaks.host <= point.peaks.host && other.peaks.disk <= point.peaks.disk &&
             other.step_seconds <= point.step_seconds;
    });
    if (!beaten) kept.push_back(std::move(point));
  }
  return kept;
}

std::vector<FrontierPoint> unbeaten_within(const std::vector<FrontierPoint>& points, const TierBytes& budgets) {
  std::vector<FrontierPoint> kept;
  for (const FrontierPoint& point : points) {
    const bool within = std::all_of(kLowerTiers.begin(), kLowerTiers.end(), [&](Tier tier) {
      return budgets.of(tier) == 0 || point.peaks.of(tier) <= budgets.of(tier);
    });
    if (within && (kept.empty() || point.step_seconds < kept.back().step_seconds)) kept.push_back(point);
  }
  return kept;
}

}  // namespace headroom
