#include "planner/explain_tiers.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/bytes.h"

namespace headroom {

void explain_lower_tiers(const Plan& plan, std::string& text) {
  for (const Tier tier : kLowerTiers) {
    const TierPlan& below = plan.below(tier);
    const int64_t copies = tier == Tier::host ? plan.host_process.copies : 0;  // to the disk, through the host
    if (below.arena_bytes == 0 && copies == 0) continue;
    const Breakdown& b = below.breakdown;
    std::vector<std::pair<const char*, int64_t>> rows{{"weights", b.weights},
                                                      {"gradients", b.gradients},
                                                      {"optimizer states", b.optimizer},
                                                      {"activations", b.activations},
                                                      {"alignment and gaps", b.alignment}};
    if (tier == Tier::host)
      rows.insert(rows.end(), {{"arena", below.arena_bytes},
                               {"copies to disk", copies},
                               {"GPU's driver, window", plan.host_process.gpu},
                               {"rest of the process", plan.host_process.total() - copies - plan.host_process.gpu}});
    rows.emplace_back("peak", below.peak_bytes);
    text += tier == Tier::host ? "on the host" : "on disk";
    text += below.budget_bytes > 0 ? fmt::format(", of a budget of {}\n", format_bytes(below.budget_bytes)) : "\n";
    for (const auto& [name, bytes] : rows)
      text += fmt::format("  {:<22}{:>12}  {:>15} bytes\n", name, format_bytes(bytes), bytes);
  }
}

}  // namespace headroom
