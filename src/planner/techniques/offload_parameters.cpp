#include <fmt/format.h>

#include "planner/techniques/offload.h"

namespace headroom::techniques {
namespace {

using Record = OffloadRecord<offload_parameters, kOffloadParameters>;

std::vector<Setting> choices(const PlanRequest& request, const Candidate& decided) {
  return offload_choices(request, decided, 2,
                         pinned_layers(request, kOffloadParameters.name, block_count(request.forward), kEveryLayer));
}

}  // namespace

constinit const Technique offload_parameters{
    .info = &kOffloadParameters,
    .ladder = {6},
    .check = Record::check,
    .verdict = needs_lower_tier,
    .choices = choices,
    .same_graph = Record::same_graph,
    .in_graph = Record::in_graph,
    .for_inference = true,
    .pass =
        [](Graph& graph, const PlanRequest&, const Candidate& candidate) {
          const Setting& setting = candidate[offload_parameters];
          headroom::offload_parameters(graph, setting.tier, setting.count, prefetch_of(candidate));
        },
    .told = Record::told,
    .phrase =
        [](const Setting& setting) {
          return setting.count == kEveryLayer ? "weights" : fmt::format("weights of {} layers", setting.count);
        },
};

}  // namespace headroom::techniques
