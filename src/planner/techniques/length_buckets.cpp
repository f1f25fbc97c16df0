#include "planner/techniques/length_buckets.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "passes/length_buckets.h"

namespace headroom {
namespace techniques {
namespace {

Told told(const PlanRequest& request, const Candidate&) {
  if (!asked_for(request, kLengthBuckets))
    return {"off", "other rows would share a step: used only when named (--group-by-length true) or allowed"};
  return {.value = fmt::format("{}", fmt::join(bucket_choices(request), ",")),
          .why = {},
          .also = "; shorter batches run at these lengths in the same arena"};
}

}  // namespace

// No pass: the planner emits the step and evaluation again for each length (emit_buckets).
constinit const Technique length_buckets{
    .info = &kLengthBuckets,
    .option = {"--group-by-length", "true", "on"},
    .by_permission = true,
    .check = check_switch<kLengthBuckets>,
    .choices = when_asked_for<kLengthBuckets>,
    .told = told,
    .record = [](const PlanRequest& request, const Candidate&,
                 Choices& choices) { choices.buckets = bucket_choices(request); },
};

}  // namespace techniques

std::vector<int64_t> bucket_choices(const PlanRequest& request) {
  return asked_for(request, kLengthBuckets) ? bucket_lengths(request.seq_length) : std::vector<int64_t>{};
}

Bindings bucket_bindings(const Graph& graph, int64_t length) {
  Bindings bindings = graph.bounds();
  int64_t& seq = bindings[static_cast<size_t>(graph.find_symbol("seq"))];
  HR_CHECK(length < seq, "a bucket of {} in sequences of {}", length, seq);
  seq = length;
  return bindings;
}

Liveness training_liveness(const Graph& graph, const PlanRequest& request) {
  Liveness liveness = analyze_liveness(graph, graph.bounds(), request.facts);
  for (const int64_t length : bucket_choices(request))
    book_scratch(graph, bucket_bindings(graph, length), request.facts, liveness);
  return liveness;
}

}  // namespace headroom
