// Candidates whose layers recompute different things: from what each layer adds under each level, without expanding a
// graph for each mix.
#pragma once

#include <span>
#include <vector>

#include "passes/recompute.h"
#include "planner/candidates.h"
#include "planner/layer_facts.h"
#include "planner/search.h"

namespace headroom {

// Families that differ in recompute's level alone, the same of every layer.
struct LevelledFamilies {
  CandidateFamily family;  // one of them
  std::vector<Keep> levels;
  std::vector<LayerFacts> facts;  // by level
};

// Whether a family has one level of the planner's choice in every layer, and keeps all of it on the device.
bool may_mix(const PlanRequest& request, const CandidateFamily& family);

// Adds the family to those that differ from it in its level alone.
void add_level(const CandidateFamily& family, LayerFacts facts, std::vector<LevelledFamilies>& to);

// The mixes of levels that no other and no point of `known` beats in bytes and seconds, as points with the bounds of
// their peaks; of points within a 2048th of the same bytes the smallest.
std::vector<FrontierPoint> mixed_points(const PlanRequest& request, std::span<const LevelledFamilies> all,
                                        std::span<const FrontierPoint> known);

}  // namespace headroom
