#include "planner/explain_frontier.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/error.h"
#include "planner/candidates.h"
#include "planner/techniques/offload.h"

namespace headroom {
namespace {

std::string describe_point(const FrontierPoint& point) {
  const std::string below = describe_offload(point.candidate, point.peaks);
  return fmt::format("{:>10}  {:>9.3f} s  {}{}{}", format_bytes(point.peaks.device), point.step_seconds,
                     describe(point.candidate), below.empty() ? "" : ", ", below);
}

// Whether the two lines would look the same.
bool look_alike(const FrontierPoint& a, const FrontierPoint& b) {
  const auto close = [](double x, double y) { return std::abs(x - y) <= 1e-3 * std::max(x, y); };
  return close(static_cast<double>(a.peaks.device), static_cast<double>(b.peaks.device)) &&
         close(static_cast<double>(a.peaks.host), static_cast<double>(b.peaks.host)) &&
         close(static_cast<double>(a.peaks.disk), static_cast<double>(b.peaks.disk)) &&
         close(a.step_seconds, b.step_seconds);
}

}  // namespace

void explain_frontier(int64_t budget_bytes, const SearchResult& result, std::string& text) {
  const auto is_chosen = [&](const FrontierPoint& point) {
    return result.plan.feasible && point.assigned && point.peaks.device == result.plan.peak_bytes &&
           point.step_seconds == result.plan.step_seconds;
  };
  const std::vector<FrontierPoint>& points = result.frontier;
  for (auto first = points.begin(); first != points.end();) {
    const auto last =
        std::find_if_not(first, points.end(), [&](const FrontierPoint& point) { return look_alike(*first, point); });
    const auto chosen = std::find_if(first, last, is_chosen);
    const FrontierPoint& shown = chosen == last ? *first : *chosen;
    text += fmt::format("{} {}{}\n", chosen == last ? "  " : " >", describe_point(shown),
                        shown.peaks.device > budget_bytes ? "  [above the budget]" : "");
    first = last;
  }
}

}  // namespace headroom
