#include "passes/offload_optimizer.h"

#include "planner/techniques/offload.h"

namespace headroom::techniques {

using Record = OffloadRecord<offload_optimizer, kOffloadOptimizer>;

constinit const Technique offload_optimizer{
    .info = &kOffloadOptimizer,
    .ladder = {3},
    .check = Record::check,
    .verdict = needs_lower_tier,
    .choices = [](const PlanRequest& request,
                  const Candidate& decided) { return offload_choices(request, decided, 0, 0); },
    .same_graph = Record::same_graph,
    .in_graph = Record::in_graph,
    .pass =
        [](Graph& graph, const PlanRequest&, const Candidate& candidate) {
          headroom::offload_optimizer(graph, candidate[offload_optimizer].tier, prefetch_of(candidate));
        },
    .told = Record::told,
    .phrase = [](const Setting&) -> std::string { return "states"; },
};

}  // namespace headroom::techniques
