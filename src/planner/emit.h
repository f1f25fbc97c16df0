// From a graph and its assigned offsets to the programs of a plan.
#pragma once

#include <span>

#include "ir/graph.h"
#include "memory/arenas.h"
#include "plan/plan.h"
#include "planner/request.h"

namespace headroom {

// Fills tensors, programs, and arena, lower bound and breakdown of each tier in `plan` from the arenas of `liveness`.
// The independent checker checks the offsets first; throws InternalError if they are unsound. Of `request` the facts'
// alignment and the profile that predicts each call's seconds are used.
void emit_programs(const Graph& graph, const Bindings& bindings, const Liveness& liveness, const Arenas& arenas,
                   const PlanRequest& request, Plan& plan);

// Adds, after emit_programs() of the same graph and arenas, the programs train_step and evaluate for shorter sequence
// lengths (bucket_program names): the same instructions at the same offsets, with smaller shapes. Throws InternalError
// if one needs more scratch than `liveness` has for it (training_liveness).
void emit_buckets(const Graph& graph, const Liveness& liveness, const Arenas& arenas, const PlanRequest& request,
                  std::span<const int64_t> lengths, Plan& plan);

}  // namespace headroom
