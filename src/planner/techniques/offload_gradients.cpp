#include "passes/offload_gradients.h"

#include "planner/techniques/micro_batch.h"
#include "planner/techniques/offload.h"

namespace headroom::techniques {
namespace {

using Record = OffloadRecord<offload_gradients, kOffloadGradients>;

// Gradients that are summed are copied back before the next micro-batch adds to them.
Setting in_graph(const PlanRequest& request, const Candidate& candidate) {
  Setting setting = Record::in_graph(request, candidate);
  if (setting.taken()) setting.form = accumulates(request, candidate);
  return setting;
}

}  // namespace

constinit const Technique offload_gradients{
    .info = &kOffloadGradients,
    .ladder = {4},
    .check = Record::check,
    .verdict = needs_lower_tier,
    .choices = [](const PlanRequest& request,
                  const Candidate& decided) { return offload_choices(request, decided, 1, 0); },
    .same_graph = Record::same_graph,
    .in_graph = in_graph,
    .pass =
        [](Graph& graph, const PlanRequest& request, const Candidate& candidate) {
          headroom::offload_gradients(graph, candidate[offload_gradients].tier, prefetch_of(candidate),
                                      accumulates(request, candidate));
        },
    .told = Record::told,
    .phrase = [](const Setting&) -> std::string { return "gradients"; },
};

}  // namespace headroom::techniques
