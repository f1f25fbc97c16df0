// The cheap judgement of a candidate: largest live sum and predicted time, without packing.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

struct Bound {
  TierBytes arenas;  // lower bounds of any packing
  double step_seconds = 0;
};

// Judges candidates over graphs assembled once per variant. Not thread-safe.
class Bounder {
 public:
  explicit Bounder(const PlanRequest& request) : request_(request) {}

  // The assembled graph of a candidate's variant; made on first use.
  const Graph& assembled(bool weight_copies);

  // Place by place, one bound per loss chunk in `chunks` (candidate.loss_chunk is ignored). `places` are candidate's
  // offload with what it keeps below the device in other tiers there: the graph is expanded once.
  std::vector<Bound> bounds(Candidate candidate, std::span<const Offload> places, std::span<const int64_t> chunks);
  Bound bound(const Candidate& candidate);

 private:
  const PlanRequest& request_;
  std::map<bool, Graph> assembled_;
};

int64_t accumulation_steps(const PlanRequest& request, int64_t micro_batch);

}  // namespace headroom
