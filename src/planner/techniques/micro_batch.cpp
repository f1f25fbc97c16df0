#include "planner/techniques/micro_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "passes/fused_optimizer.h"
#include "passes/micro_batch.h"

namespace headroom {
namespace techniques {
namespace {

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  if (const int64_t pinned = pinned_micro_batch(request); pinned > 0) return {{std::min(pinned, request.global_batch)}};
  if (pin(request, kFusedOptimizer.name) == "on" || loss_spans_batch(request)) return {{request.global_batch}};
  if (request.arithmetic_fixed) return {{1}};
  std::set<int64_t> sizes{request.global_batch};
  for (int64_t size = 1; size < request.global_batch && size <= 64; size *= 2) sizes.insert(size);
  std::vector<Setting> out;
  for (const int64_t size : sizes) out.push_back({size});
  return out;
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  Told out{.value = std::to_string(micro_batch_of(chosen)), .why = "the whole global batch fits at once"};
  out.pin_leaves_choice = pin(request, kMicroBatch.name) == "on";
  if (accumulates(request, chosen)) {
    out.why = fmt::format("compared with all {} sequences at once", request.global_batch);
    out.without = chosen;
    (*out.without)[micro_batch].count = request.global_batch;
  } else if (loss_spans_batch(request)) {
    out.why = "the loss that balances experts needs the whole global batch";
  }
  return out;
}

}  // namespace

constinit const Technique micro_batch{
    .info = &kMicroBatch,
    .option = {"--micro-batch-size"},
    .usual = "1",
    .ladder = {1},
    .check = [](const PlanRequest&, const std::string& setting) { check_setting(kMicroBatch, setting, {"on"}, true); },
    .choices = choices,
    .least_first = true,
    .runs_always = true,
    .pass = [](Graph& graph, const PlanRequest&,
               const Candidate& candidate) { set_micro_batch(graph, micro_batch_of(candidate)); },
    .told = told,
    .phrase = [](const Setting& setting) { return fmt::format("micro-batch {}", setting.count); },
    .record =
        [](const PlanRequest& request, const Candidate& chosen, Choices& out) {
          out.micro_batch = micro_batch_of(chosen);
          out.accumulation = accumulation_steps(request, out.micro_batch);
        },
    .as_pin = [](const Setting& setting) { return std::to_string(setting.count); },
};

}  // namespace techniques

int64_t pinned_micro_batch(const PlanRequest& request) { return pinned_number(request, kMicroBatch); }

void pin_micro_batch(std::map<std::string, Pin>& techniques, int64_t size, std::string why) {
  const std::string name(kMicroBatch.name);
  if (size > 0)
    techniques[name] = {std::to_string(size), std::move(why)};
  else
    techniques.erase(name);
}

bool loss_spans_batch(const PlanRequest& request) {
  const Graph& graph = request.forward;
  const std::vector<NodeId>& nodes = graph.region(graph.find_program("forward")).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).op->spans_batch(); });
}

}  // namespace headroom
