// Candidates whose layers have different recomputation levels, computed from what each layer adds at each level,
// without expanding a graph for each mix.
#pragma once

#include <span>
#include <vector>

#include "passes/recompute.h"
#include "planner/candidates.h"
#include "planner/layer_facts.h"
#include "planner/search.h"

namespace headroom {

// Families that differ only in recompute's level, which is the same for every layer.
struct LevelledFamilies {
  CandidateFamily family;  // one of them
  std::vector<Keep> levels;
  std::vector<LayerFacts> facts;  // by level
};

// Whether a family has a level of the planner's choice that is the same in every layer, and keeps everything on the
// device.
bool may_mix(const PlanRequest& request, const CandidateFamily& family);

// Adds the family to those that differ from it only in the level.
void add_level(const CandidateFamily& family, LayerFacts facts, std::vector<LevelledFamilies>& to);

// The mixes of levels that no other and no point of `known` beats in bytes and seconds, as points with the bounds of
// their peaks; of points within a 2048th of the same bytes the smallest.
std::vector<FrontierPoint> mixed_points(const PlanRequest& request, std::span<const LevelledFamilies> all,
                                        std::span<const FrontierPoint> known);

}  // namespace headroom
