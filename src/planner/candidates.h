// The candidates that are tried: a small grid that does not depend on the budgets.
#pragma once

#include <string>
#include <vector>

#include "planner/pipeline.h"

namespace headroom {

// Candidates whose graphs are equal except for the lower tiers and the loss's chunk.
struct CandidateFamily {
  Candidate candidate;
  std::vector<Candidate> places;  // the tiers: other settings of the techniques that move values
  std::vector<int64_t> chunks;
};

// All combinations of the techniques' choices. Tiers are decided first, then the model stage, sizes, and what is
// computed when.
std::vector<CandidateFamily> families(const PlanRequest& request);
// The families of candidates worth using, with each refinement of their settings.
std::vector<CandidateFamily> refined_families(const PlanRequest& request, const std::vector<Candidate>& worth_taking);
// The one whose members need least memory; what a technique holds outside the arenas is not compared with what it saves
// (frugal_families).
CandidateFamily most_frugal(const PlanRequest& request);
// The same, and without some or all of the techniques that hold something outside the arenas: one of them needs least.
std::vector<CandidateFamily> frugal_families(const PlanRequest& request);

// A member of a family.
Candidate member(const CandidateFamily& family, const Candidate& place, int64_t chunk);

// "micro-batch 2, loss chunk 256, 8 x block-input, 22 x keep-all, fused optimizer"
std::string describe(const Candidate& candidate);

}  // namespace headroom
