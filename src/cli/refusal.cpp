#include "cli/refusal.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/terminal.h"

namespace headroom {

void print_refusal(const Plan& plan) {
  if (plan.host_budget_bytes > 0 && plan.host_peak_bytes > plan.host_budget_bytes) {
    const int64_t short_of = plan.host_peak_bytes - plan.host_budget_bytes;
    print_error(
        fmt::format("does not fit: the host's budget of {} bytes ({}) falls short by {} bytes ({})",
                    plan.host_budget_bytes, format_bytes(plan.host_budget_bytes), short_of, format_bytes(short_of)),
        fmt::format("give --host-memory {} or more", plan.host_peak_bytes));
    return;
  }
  const int64_t shortfall = plan.minimum_bytes - plan.budget_bytes;
  print_error(
      fmt::format("does not fit: the budget of {} bytes ({}) falls short by {} bytes ({}); minimum_bytes {} ({})",
                  plan.budget_bytes, format_bytes(plan.budget_bytes), shortfall, format_bytes(shortfall),
                  plan.minimum_bytes, format_bytes(plan.minimum_bytes)),
      fmt::format("give --memory {} or more{}{}", plan.minimum_bytes,
                  plan.cheapest_fix.empty() ? "" : ", or: ", plan.cheapest_fix));
}

}  // namespace headroom
