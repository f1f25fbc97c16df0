#include "planner/explain_offload.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "passes/prefetch.h"

namespace headroom {
namespace {

class OffloadReporter {
 public:
  OffloadReporter(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                  Plan& plan)
      : request_(request), bounder_(bounder), chosen_(chosen), reached_(reached), plan_(plan) {}

  void run() {
    const Offload& offload = chosen_.offload;
    add(kOffloadActivations,
        offload.activation_blocks > 0 ? fmt::format("{} layers", offload.activation_blocks) : "off",
        offload.activation_blocks > 0, [](Offload& o) { o.activation_blocks = 0; });
    add(kOffloadOptimizer, offload.optimizer ? "on" : "off", offload.optimizer,
        [](Offload& o) { o.optimizer = false; });
    add(kOffloadGradients, offload.gradients ? "on" : "off", offload.gradients,
        [](Offload& o) { o.gradients = false; });
    add(kOffloadParameters, offload.parameters ? "on" : "off", offload.parameters,
        [](Offload& o) { o.parameters = false; });
    const bool ahead = offload.any() && offload.prefetch > 0;
    add(kPrefetch, ahead ? std::to_string(offload.prefetch) : "off", ahead, [](Offload& o) { o.prefetch = 0; });
  }

 private:
  template <typename Drop>
  void add(const PassInfo& info, std::string value, bool taken, const Drop& drop) {
    TechniqueReport report{
        std::string(info.name), std::string(kind_name(info.kind)), std::move(value), 0, 0, why(info)};
    if (taken) {
      Candidate without = chosen_;
      drop(without.offload);
      const Bound bound = bounder_.bound(without);
      report.saves_bytes = bound.arena_bytes - reached_.arena_bytes;
      report.costs_seconds = reached_.step_seconds - bound.step_seconds;
    }
    plan_.techniques.push_back(std::move(report));
  }

  std::string why(const PassInfo& info) const {
    if (const auto pin = request_.techniques.find(std::string(info.name)); pin != request_.techniques.end())
      return fmt::format("pinned by --technique {}={}", pin->first, pin->second);
    if (request_.host_budget_bytes == 0) return "there is no memory of the host beside the device's (--host-memory)";
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

void explain_host_parts(const Plan& plan, std::string& text) {
  if (plan.host_arena_bytes == 0) return;
  const Breakdown& b = plan.host_breakdown;
  const std::pair<const char*, int64_t> rows[] = {{"weights", b.weights},
                                                  {"gradients", b.gradients},
                                                  {"optimizer states", b.optimizer},
                                                  {"activations", b.activations},
                                                  {"alignment and gaps", b.alignment},
                                                  {"arena", plan.host_arena_bytes},
                                                  {"process", plan.host_process.total()},
                                                  {"peak", plan.host_peak_bytes}};
  text += fmt::format("on the host, of a budget of {}\n", format_bytes(plan.host_budget_bytes));
  for (const auto& [name, bytes] : rows)
    text += fmt::format("  {:<22}{:>12}  {:>15} bytes\n", name, format_bytes(bytes), bytes);
}

}  // namespace headroom
