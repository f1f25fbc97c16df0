// The techniques and the order of their passes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "planner/technique.h"

namespace headroom {

// Every technique of this version, in the order of the pipeline.
std::span<const Technique* const> all_techniques();
std::vector<const PassInfo*> all_passes();        // the same, for help and documentation
std::vector<const PassInfo*> inference_passes();  // those for models that are not trained
// Null for an unknown name.
const Technique* find_technique(std::string_view name);

// The first technique of which an option is the own one or an alias ("--lora-r"); null for other options.
const Technique* technique_set_by(std::string_view option);

// The parts of the pipeline: before autodiff; and after it products, sizes, order of computation, and placement.
enum class PipelinePart : uint8_t { model, products, sizes, compute, placement };
std::span<const Technique* const> techniques_of(PipelinePart part);

// Checks names and settings of all pins and that they can be honoured. Throws Error(usage) with the nearest name and
// the reason.
void check_techniques(const PlanRequest& request);

// Applies model passes, autodiff and the passes on products to the forward graph: programs load, train_step, evaluate
// and save. Only the candidate's settings of these parts are used.
Graph assemble_training(const PlanRequest& request, const Candidate& candidate, bool verify = false,
                        std::vector<PassTrace>* trace = nullptr);
// The same for evaluation: load and evaluate.
Graph assemble_evaluation(const PlanRequest& request, bool verify = false);

// The rest of the pipeline: compute passes, then placement passes.
Graph expand(const Graph& assembled, const PlanRequest& request, const Candidate& candidate, bool verify = false,
             std::vector<PassTrace>* trace = nullptr);

// The passes on the order of computation: sizes, recompute, updates.
void run_compute_passes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify = false,
                        std::vector<PassTrace>* trace = nullptr);
// The passes on placement.
void run_placement_passes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify = false,
                          std::vector<PassTrace>* trace = nullptr);
// The sizes of a graph before or after its passes: the bound of the micro-batch and the loss's chunk.
void set_sizes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify = false,
               std::vector<PassTrace>* trace = nullptr);

// Process bytes for a candidate's techniques, in addition to those that the request has for every candidate.
int64_t process_bytes_of(const PlanRequest& request, const Candidate& candidate);

// The part of a candidate on which its graph depends.
Candidate in_graph(const PlanRequest& request, const Candidate& candidate);

}  // namespace headroom
