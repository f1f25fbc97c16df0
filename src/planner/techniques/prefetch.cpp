#include "passes/prefetch.h"

#include "planner/techniques/offload.h"

namespace headroom::techniques {
namespace {

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  return {{pinned_prefetch(request).value_or(1)}};
}

std::vector<Setting> refinements(const PlanRequest& request, const Candidate& candidate) {
  if (!offloads(candidate) || !pin(request, kPrefetch.name).empty()) return {};
  return {{0}, {2}, {4}};
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  const bool any = offloads(chosen), ahead = any && prefetch_of(chosen) > 0;
  Told out{ahead ? std::to_string(prefetch_of(chosen)) : "off", needs_lower_tier(request).why_not};
  if (out.why.empty()) out.why = any ? "how many windows early copies start; compared with none" : "nothing is copied";
  if (!ahead) return out;
  out.without = chosen.without(prefetch);
  return out;
}

}  // namespace

// No pass: the passes of the offload techniques read its setting.
constinit const Technique prefetch{
    .info = &kPrefetch,
    .usual = "1",
    .check = check_prefetch,
    .choices = choices,
    .refinements = refinements,
    .for_inference = true,
    .told = told,
};

}  // namespace headroom::techniques
