#include "engine/memory_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/step_memory.h"
#include "planner/candidates.h"

namespace headroom {
namespace {

constexpr size_t kMostPoints = 64;

std::string setting_of(const Candidate& candidate) {
  const std::string text = describe(candidate);
  return text.size() <= 200 ? text : text.substr(0, 197) + "...";
}

}  // namespace

std::string memory_record(const SearchResult& found) {
  std::vector<BudgetPoint> points;
  const size_t count = found.frontier.size(), kept = std::min(count, kMostPoints);
  for (size_t i = 0; i < kept; ++i) {
    // The first and the last are always among them.
    const FrontierPoint& point = found.frontier[kept > 1 ? i * (count - 1) / (kept - 1) : 0];
    points.push_back({point.peaks.device, point.assigned, point.step_seconds, setting_of(point.candidate)});
  }
  return memory_json(found.plan, step_memory(found.plan, "train_step"), points);
}

}  // namespace headroom
