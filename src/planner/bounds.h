// What a candidate takes at least and how long, without packing: its largest live sum and its predicted time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

struct Bound {
  TierBytes arenas;  // lower bounds of any packing
  double step_seconds = 0;
};

// Bounds candidates over graphs assembled once per variant; what one candidate's passes made serves the next one where
// both are alike, so that candidates are best asked for in the order of expands_before(). Not thread-safe.
class Bounder {
 public:
  explicit Bounder(const PlanRequest& request) : request_(request) {}

  // The assembled graph of a candidate's variant; made on first use.
  const Graph& assembled(bool weight_copies);

  // Place by place, one bound per loss chunk in `chunks` (candidate.loss_chunk is ignored). `places` are candidate's
  // offload with what it keeps below the device in other tiers there: the graph is expanded once.
  std::vector<Bound> bounds(Candidate candidate, std::span<const Offload> places, std::span<const int64_t> chunks);
  Bound bound(const Candidate& candidate);

  // Gives back what is kept for the next candidate.
  void forget();

 private:
  const Graph& expanded(const Candidate& candidate);

  const PlanRequest& request_;
  std::map<bool, Graph> assembled_;
  std::optional<Candidate> last_;  // whose graphs these are
  Graph computed_, expanded_;      // after its compute passes, and after its offload passes where it has any
};

// An order in which candidates that share the work of their passes are neighbours.
bool expands_before(const Candidate& a, const Candidate& b);

int64_t accumulation_steps(const PlanRequest& request, int64_t micro_batch);

}  // namespace headroom
