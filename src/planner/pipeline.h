// The techniques and the order of their passes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "planner/technique.h"

namespace headroom {

// Every technique of this version, in the order of the pipeline.
std::span<const Technique* const> all_techniques();
std::vector<const PassInfo*> all_passes();  // the same, for help and documentation
// Null for an unknown name.
const Technique* find_technique(std::string_view name);

// The parts of the pipeline: before autodiff, and after it what changes products, sizes, what is computed when, and
// where it lies.
enum class PipelinePart : uint8_t { model, products, sizes, compute, placement };
std::span<const Technique* const> techniques_of(PipelinePart part);

// Checks names and settings of all pins and that they can be honoured. Throws Error(usage) with the nearest name and
// the reason.
void check_techniques(const PlanRequest& request);

// The forward graph through model passes, autodiff and the passes on products: programs load, train_step, evaluate and
// save. Only the candidate's settings of these parts matter.
Graph assemble_training(const PlanRequest& request, const Candidate& candidate, bool verify = false,
                        std::vector<PassTrace>* trace = nullptr);
// The same for evaluation alone: load and evaluate.
Graph assemble_evaluation(const PlanRequest& request);

// The rest of the pipeline: compute passes, then placement passes.
Graph expand(const Graph& assembled, const PlanRequest& request, const Candidate& candidate, bool verify = false,
             std::vector<PassTrace>* trace = nullptr);

// The passes that say what is computed when: sizes, recompute, updates.
void run_compute_passes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify = false,
                        std::vector<PassTrace>* trace = nullptr);
// The passes that say where the results lie.
void run_placement_passes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify = false,
                          std::vector<PassTrace>* trace = nullptr);
// The sizes of a graph that has had its passes, or will have: the bound of the micro-batch and the loss's chunk.
void set_sizes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify = false,
               std::vector<PassTrace>* trace = nullptr);

// What the process holds for a candidate's techniques, beside what the request has for every one.
int64_t process_bytes_of(const PlanRequest& request, const Candidate& candidate);

// What of a candidate its graph depends on.
Candidate in_graph(const PlanRequest& request, const Candidate& candidate);

}  // namespace headroom
