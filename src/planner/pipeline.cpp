#include "planner/pipeline.h"

#include "base/error.h"
#include "passes/chunked_loss.h"
#include "passes/fused_optimizer.h"
#include "passes/micro_batch.h"
#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"

namespace headroom {

// Before this, assemble.cpp has run the model stage:
//   packing           hands attention and positions the segments of the batch
//   lora              adds thin products beside the targeted ones
//   freeze            says which weights autodiff trains
//   bf16-mixed        rewrites the forward graph, so that its backward pass follows by itself
//   bf16-true         the same with the weights themselves in bf16
//   autodiff          inside the loop over micro-batches
//   matmul-precision  after autodiff, so that it meets the gradients' products
//   update            norm, clipping, one optimizer node per weight
Graph expand(const Graph& assembled, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace) {
  Graph graph = assembled;
  run_compute_passes(graph, candidate, verify, trace);
  run_offload_passes(graph, candidate, verify, trace);
  return graph;
}

void set_sizes(Graph& graph, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace) {
  // The micro-batch bounds every shape; all later decisions look at bytes.
  run_pass(kMicroBatch, graph, verify, trace, [&](Graph& g) { set_micro_batch(g, candidate.micro_batch); });
  // The loss's scratch follows from the chunk.
  run_pass(kChunkedLoss, graph, verify, trace, [&](Graph& g) { set_loss_chunk(g, candidate.loss_chunk); });
}

void run_compute_passes(Graph& graph, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace) {
  set_sizes(graph, candidate, verify, trace);
  // Drops activations; its clones read weights in the backward pass.
  run_pass(kRecompute, graph, verify, trace, [&](Graph& g) { recompute(g, candidate.keep); });
  // An update may only follow the last reader of its weight, clones included.
  if (candidate.fused_optimizer)
    run_pass(kFusedOptimizer, graph, verify, trace, [&](Graph& g) { fuse_optimizer(g, g.find_program("train_step")); });
}

void run_offload_passes(Graph& graph, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace) {
  const Offload& offload = candidate.offload;
  // After recompute: what is computed again is not kept anywhere.
  if (offload.activations != Tier::device)
    run_pass(kOffloadActivations, graph, verify, trace, [&](Graph& g) {
      offload_activations(g, offload.activations, offload.activation_blocks, offload.prefetch);
    });
  // After fused-optimizer, which moves updates and leaves no gradient to carry.
  if (offload.optimizer != Tier::device)
    run_pass(kOffloadOptimizer, graph, verify, trace,
             [&](Graph& g) { offload_optimizer(g, offload.optimizer, offload.prefetch); });
  if (offload.gradients != Tier::device)
    run_pass(kOffloadGradients, graph, verify, trace,
             [&](Graph& g) { offload_gradients(g, offload.gradients, offload.prefetch, candidate.accumulates); });
  // Last: every reader of a weight is known.
  if (offload.parameters != Tier::device)
    run_pass(kOffloadParameters, graph, verify, trace,
             [&](Graph& g) { offload_parameters(g, offload.parameters, offload.parameter_layers, offload.prefetch); });
}

}  // namespace headroom
