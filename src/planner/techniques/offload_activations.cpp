#include "passes/offload_activations.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/techniques/offload.h"

namespace headroom::techniques {
namespace {

using Record = OffloadRecord<offload_activations, kOffloadActivations>;

// None, half of the layers (the first ones), or all.
std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  if (offload_tiers(request).empty()) return {Setting{}};
  const int64_t blocks = block_count(request.forward);
  const Tier tier = allowed_tiers(request, kOffloadActivations.name).front();
  std::vector<Setting> out;
  const auto add = [&](int64_t layers) {
    const Setting choice = layers == 0 || tier == Tier::device ? Setting{} : Setting{.count = layers, .tier = tier};
    if (std::find(out.begin(), out.end(), choice) == out.end()) out.push_back(choice);
  };
  if (offload_pin(request, kOffloadActivations.name)) {
    add(pinned_layers(request, kOffloadActivations.name, blocks, blocks));
  } else {
    for (const int64_t layers : {int64_t{0}, blocks / 2, blocks}) add(layers);
  }
  return out;
}

}  // namespace

constinit const Technique offload_activations{
    .info = &kOffloadActivations,
    .ladder = {5},
    .check = Record::check,
    .verdict = needs_lower_tier,
    .choices = choices,
    .same_graph = Record::same_graph,
    .in_graph = Record::in_graph,
    .pass =
        [](Graph& graph, const PlanRequest&, const Candidate& candidate) {
          const Setting& setting = candidate[offload_activations];
          headroom::offload_activations(graph, setting.tier, setting.count, prefetch_of(candidate));
        },
    .told = Record::told,
    .phrase = [](const Setting& setting) { return fmt::format("activations of {} layers", setting.count); },
};

}  // namespace headroom::techniques
