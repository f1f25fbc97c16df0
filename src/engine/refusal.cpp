#include "engine/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/least_bytes.h"
#include "planner/search.h"

namespace headroom {

namespace {

constexpr size_t kShownAlternatives = 3;

// What other settings would need, a line each: those that fit, mildest first, then those that come nearest.
std::string alternatives_text(const Plan& plan) {
  if (plan.alternatives.empty()) return "";
  std::vector<const Alternative*> shown;
  for (const Alternative& a : plan.alternatives) shown.push_back(&a);
  std::stable_sort(shown.begin(), shown.end(), [](const Alternative* a, const Alternative* b) {
    return a->fits != b->fits ? a->fits : !a->fits && a->minimum_bytes < b->minimum_bytes;
  });
  shown.resize(std::min(shown.size(), kShownAlternatives));
  std::string text = fmt::format("\n  least budget {:>11}  with these options", format_least_bytes(plan.minimum_bytes));
  for (const Alternative* a : shown)
    text += fmt::format("\n               {:>11}  {}{}{}", format_least_bytes(a->minimum_bytes), a->options,
                        a->effect.empty() ? "" : ": " + a->effect, a->fits ? "  [fits]" : "");
  return text;
}

// "1048576 bytes (1.00 MiB) on the device, where the least is 2097152 (2.00 MiB)"
std::string against_least(int64_t budget, std::string_view place, int64_t least) {
  return fmt::format("{} bytes ({}) {}, where the least is {} ({})", budget, format_bytes(budget), place, least,
                     format_least_bytes(least));
}

// For every tier: what it would need with the others unchanged.
Refusal refusal_of_tiers(const Plan& plan) {
  std::string ways;
  if (plan.minimum_bytes > plan.budget_bytes) ways = fmt::format("give --memory {} or more", plan.minimum_bytes);
  std::string tiers =
      against_least(plan.budget_bytes, plan.facts.is_cpu() ? "in memory" : "on the device", plan.minimum_bytes);
  for (const Tier tier : kLowerTiers) {
    const TierPlan& below = plan.below(tier);
    if (below.budget_bytes == 0) continue;
    tiers +=
        ", with " + against_least(below.budget_bytes, tier == Tier::host ? "on the host" : "on disk", below.peak_bytes);
    if (below.peak_bytes > below.budget_bytes)
      ways += fmt::format("{}{} or more", ways.empty() ? "give " : ", or ", tier_option(tier, below.peak_bytes));
  }
  return {"does not fit: " + tiers, fmt::format("{}{}{}{}", ways, plan.cheapest_fix.empty() ? "" : ", or: ",
                                                plan.cheapest_fix, alternatives_text(plan))};
}

}  // namespace

Refusal refusal_of(const Plan& plan) {
  if (plan.host.budget_bytes > 0 || plan.disk.budget_bytes > 0) return refusal_of_tiers(plan);
  const int64_t shortfall = plan.minimum_bytes - plan.budget_bytes;
  return {fmt::format("does not fit: the budget of {} bytes ({}) falls short by {} bytes ({}); minimum_bytes {} ({})",
                      plan.budget_bytes, format_bytes(plan.budget_bytes), shortfall, format_bytes(shortfall),
                      plan.minimum_bytes, format_least_bytes(plan.minimum_bytes)),
          fmt::format("give --memory {} or more{}{}{}", plan.minimum_bytes,
                      plan.cheapest_fix.empty() ? "" : ", or: ", plan.cheapest_fix, alternatives_text(plan))};
}

void throw_if_unfit(const Plan& plan) {
  if (plan.feasible) return;
  const Refusal words = refusal_of(plan);
  throw Error(ErrorKind::does_not_fit, words.message, words.remedy);
}

}  // namespace headroom
