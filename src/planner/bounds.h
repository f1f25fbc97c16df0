// Lower bounds of a candidate's bytes and its time, without assigned offsets: its largest live sum and its predicted
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cost/call_costs.h"
#include "planner/layer_facts.h"
#include "planner/pipeline.h"
#include "planner/techniques/offload.h"

namespace headroom {

struct Bound {
  TierBytes arenas;  // lower bounds of any offset assignment
  double step_seconds = 0;
};

// Bounds candidates over graphs assembled once per setting of the model stage; the results of one candidate's passes
// are reused for the next if both are equal there, so candidates are best passed in the order of expands_before(). Not
// thread-safe.
class Bounder {
 public:
  explicit Bounder(const PlanRequest& request) : request_(request), costs_(request.profile) {}

  // The assembled graph of a candidate; made on first use.
  const Graph& assembled(const Candidate& candidate);

  // For each of `places` one bound per loss chunk in `chunks` (the candidate's own is ignored). `places` are candidates
  // that differ from this one only in the lower tiers: the graph is expanded once. `facts`, if not null, receives what
  // each layer adds.
  std::vector<Bound> bounds(Candidate candidate, std::span<const Candidate> places, std::span<const int64_t> chunks,
                            LayerFacts* facts = nullptr);
  Bound bound(const Candidate& candidate);

  // Frees what is kept for the next candidate.
  void forget();

 private:
  const Graph& expanded(const Candidate& candidate);

  const PlanRequest& request_;
  CallCosts costs_;
  std::vector<std::pair<Candidate, Graph>> assembled_;
  std::optional<Candidate> last_;  // whose graphs these are, as returned by in_graph()
  Graph computed_, expanded_;      // after its compute passes, and after its offload passes if it has any
};

// An order in which candidates that share the work of their passes are neighbours; for results of in_graph().
bool expands_before(const Candidate& a, const Candidate& b);

}  // namespace headroom
