#include "planner/explain_offload.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/bytes.h"
#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "passes/prefetch.h"
#include "planner/offload_choices.h"

namespace headroom {
namespace {

class OffloadReporter {
 public:
  OffloadReporter(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                  Plan& plan)
      : request_(request), bounder_(bounder), chosen_(chosen), reached_(reached), plan_(plan) {}

  void run() {
    const Offload& offload = chosen_.offload;
    add(kOffloadActivations, tier_setting(offload.activations, offload.activation_blocks),
        [](Offload& o) { o.activations = Tier::device, o.activation_blocks = 0; });
    add(kOffloadOptimizer, tier_setting(offload.optimizer), [](Offload& o) { o.optimizer = Tier::device; });
    add(kOffloadGradients, tier_setting(offload.gradients), [](Offload& o) { o.gradients = Tier::device; });
    add(kOffloadParameters, tier_setting(offload.parameters, offload.parameter_layers),
        [](Offload& o) { o.parameters = Tier::device, o.parameter_layers = 0; });
    const bool ahead = offload.any() && offload.prefetch > 0;
    add(kPrefetch, ahead ? std::to_string(offload.prefetch) : "off", [](Offload& o) { o.prefetch = 0; });
  }

 private:
  template <typename Drop>
  void add(const PassInfo& info, std::string value, const Drop& drop) {
    const bool taken = value != "off";
    TechniqueReport report{
        std::string(info.name), std::string(kind_name(info.kind)), std::move(value), 0, 0, why(info)};
    if (taken) {
      Candidate without = chosen_;
      drop(without.offload);
      const Bound bound = bounder_.bound(without);
      report.saves_bytes = bound.arenas.device - reached_.arenas.device;
      report.costs_seconds = reached_.step_seconds - bound.step_seconds;
    }
    plan_.techniques.push_back(std::move(report));
  }

  std::string why(const PassInfo& info) const {
    if (const auto pin = request_.techniques.find(std::string(info.name)); pin != request_.techniques.end())
      return fmt::format("pinned by --technique {}={}", pin->first, pin->second);
    if (offload_tiers(request_).empty())
      return "there is no tier below the device's memory (--host-memory, --disk-memory)";
    if (info.name == kPrefetch.name)
      return chosen_.offload.any() ? "windows ahead of their use that copies start; against none" : "nothing is copied";
    return "against keeping it on the device";
  }

  const PlanRequest& request_;
  Bounder& bounder_;
  const Candidate& chosen_;
  const Bound& reached_;
  Plan& plan_;
};

}  // namespace

void report_offload(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                    Plan& plan) {
  OffloadReporter(request, bounder, chosen, reached, plan).run();
}

void explain_lower_tiers(const Plan& plan, std::string& text) {
  for (const Tier tier : kLowerTiers) {
    const TierPlan& below = plan.below(tier);
    const int64_t copies = tier == Tier::host ? plan.host_process.copies : 0;  // to the disk, by way of the host
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
