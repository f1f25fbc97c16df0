#include "planner/pipeline.h"

#include "base/error.h"
#include "passes/chunked_loss.h"
#include "passes/fused_optimizer.h"
#include "passes/micro_batch.h"

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
  // The micro-batch bounds every shape; all later decisions look at bytes.
  run_pass(kMicroBatch, graph, verify, trace, [&](Graph& g) { set_micro_batch(g, candidate.micro_batch); });
  // The loss's scratch follows from the chunk.
  run_pass(kChunkedLoss, graph, verify, trace, [&](Graph& g) { set_loss_chunk(g, candidate.loss_chunk); });
  // Drops activations; its clones read weights in the backward pass.
  run_pass(kRecompute, graph, verify, trace, [&](Graph& g) { recompute(g, candidate.keep); });
  // Last: an update may only follow the last reader of its weight, clones included.
  if (candidate.fused_optimizer)
    run_pass(kFusedOptimizer, graph, verify, trace, [&](Graph& g) { fuse_optimizer(g, g.find_program("train_step")); });
  return graph;
}

}  // namespace headroom
