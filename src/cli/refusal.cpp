#include "cli/refusal.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/terminal.h"

namespace headroom {

namespace {

// Both tiers: what each would need, the other as it is.
void print_tiers_refusal(const Plan& plan) {
  std::string ways;
  if (plan.minimum_bytes > plan.budget_bytes) ways = fmt::format("give --memory {} or more", plan.minimum_bytes);
  if (plan.host_peak_bytes > plan.host_budget_bytes)
    ways += fmt::format("{}--host-memory {} or more", ways.empty() ? "give " : ", or ", plan.host_peak_bytes);
  print_error(
      fmt::format("does not fit: {} bytes ({}) on the device, where the least is {} ({}), with {} bytes ({}) on the "
                  "host, where the least is {} ({})",
                  plan.budget_bytes, format_bytes(plan.budget_bytes), plan.minimum_bytes,
                  format_bytes(plan.minimum_bytes), plan.host_budget_bytes, format_bytes(plan.host_budget_bytes),
                  plan.host_peak_bytes, format_bytes(plan.host_peak_bytes)),
      fmt::format("{}{}{}", ways, plan.cheapest_fix.empty() ? "" : ", or: ", plan.cheapest_fix));
}

}  // namespace

void print_refusal(const Plan& plan) {
  if (plan.host_budget_bytes > 0) return print_tiers_refusal(plan);
  const int64_t shortfall = plan.minimum_bytes - plan.budget_bytes;
  print_error(
      fmt::format("does not fit: the budget of {} bytes ({}) falls short by {} bytes ({}); minimum_bytes {} ({})",
                  plan.budget_bytes, format_bytes(plan.budget_bytes), shortfall, format_bytes(shortfall),
                  plan.minimum_bytes, format_bytes(plan.minimum_bytes)),
      fmt::format("give --memory {} or more{}{}", plan.minimum_bytes,
                  plan.cheapest_fix.empty() ? "" : ", or: ", plan.cheapest_fix));
}

}  // namespace headroom
