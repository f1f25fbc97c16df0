// What a candidate takes at least and how long, without assigned offsets: its largest live sum and its predicted time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/layer_facts.h"
#include "planner/pipeline.h"
#include "planner/techniques/offload.h"

namespace headroom {

struct Bound {
  TierBytes arenas;  // lower bounds of any offset assignment
  double step_seconds = 0;
};

// Bounds candidates over graphs assembled once per setting of the model stage; what one candidate's passes made serves
// the next one where both are alike, so that candidates are best asked for in the order of expands_before(). Not
// thread-safe.
class Bounder {
 public:
  explicit Bounder(const PlanRequest& request) : request_(request) {}

  // The assembled graph of a candidate; made on first use.
  const Graph& assembled(const Candidate& candidate);

  // Place by place, one bound per loss chunk in `chunks` (candidate's own is ignored). `places` are candidates that
  // differ from this one in the tiers below the device alone: the graph is expanded once. `facts`, where it is wanted:
  // what each layer adds.
  std::vector<Bound> bounds(Candidate candidate, std::span<const Candidate> places, std::span<const int64_t> chunks,
                            LayerFacts* facts = nullptr);
  Bound bound(const Candidate& candidate);

  // Gives back what is kept for the next candidate.
  void forget();

 private:
  const Graph& expanded(const Candidate& candidate);

  const PlanRequest& request_;
  std::vector<std::pair<Candidate, Graph>> assembled_;
  std::optional<Candidate> last_;  // whose graphs these are, as in_graph() has it
  Graph computed_, expanded_;      // after its compute passes, and after its offload passes where it has any
};

// An order in which candidates that share the work of their passes are neighbours; of what in_graph() gives.
bool expands_before(const Candidate& a, const Candidate& b);

}  // namespace headroom
