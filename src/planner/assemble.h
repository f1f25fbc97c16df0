// From a forward graph to the programs of a training run: load, train_step, evaluate, save.
#pragma once

#include "ir/graph.h"
#include "planner/request.h"

namespace headroom {

// Runs the model passes, differentiates the forward program inside the loop over micro-batches ("micro_batches"),
// appends gradient norm, clipping and update, and adds the loop of evaluation ("eval_batches") and the staging of save.
// The program "forward" itself is gone afterwards. results[0] of train_step and evaluate: the accumulator of forward,
// {sum of losses, targets}; persistent "grad_sum_squares" f64[1] holds the squared gradient norm after train_step.
Graph assemble_training(const PlanRequest& request, bool weight_copies);

// The same for evaluation alone: load and evaluate.
Graph assemble_evaluation(const PlanRequest& request);

}  // namespace headroom
