// From a forward graph to the programs of a run: load, train_step, evaluate, save. These are the steps of pipeline.cpp
// that belong to no technique.
#pragma once

#include "ir/graph.h"
#include "planner/assembly.h"
#include "planner/request.h"

namespace headroom {

// The request's forward graph, before any pass.
Assembly begin_assembly(const PlanRequest& request, bool trains);

// Adds the staging of load, and evaluation ("eval_batches"). For training also the step: it differentiates the forward
// program inside the loop over micro-batches ("micro_batches") and appends gradient norm, clipping and update; and the
// staging of save. results[0] of train_step and evaluate: the accumulator of forward, {sum of losses, targets};
// persistent "grad_sum_squares" f64[1] holds the squared gradient norm after train_step.
void add_programs(Assembly& assembly, const PlanRequest& request);

// Drops the program "forward" and everything that only it needed.
void drop_forward(Graph& graph);

}  // namespace headroom
