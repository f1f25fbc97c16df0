// A plan with the sequence in parts, made by the passes themselves.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "ir/verify.h"
#include "memory/arenas.h"
#include "passes/chunked_loss.h"
#include "passes/fused_optimizer.h"
#include "passes/micro_batch.h"
#include "passes/recompute.h"
#include "passes/sequence_chunks.h"
#include "planner/candidates.h"
#include "planner/emit.h"
#include "planner/techniques/length_buckets.h"

namespace headroom::test {

struct ChunkedPlan {
  int64_t chunks = 1;  // 1: the whole sequence
  Keep keep = Keep::all;
  bool fused = false;
  std::function<void(Graph&)> offload = {};
  int64_t length = 0;  // of a bucket whose programs replace those of the whole length
};

// Rebuilds a plan's programs with its micro-batch and loss chunk.
inline void remake(const PlanRequest& request, const ChunkedPlan& chunked, Plan& plan) {
  Graph graph = assemble_training(request, most_frugal(request).candidate);
  set_micro_batch(graph, plan.choices.micro_batch);
  set_loss_chunk(graph, plan.choices.integer("loss_chunk_rows"));
  recompute(graph, std::vector<Keep>(64, chunked.keep));
  EXPECT_EQ(chunk_sequences(graph, chunked.chunks) > 0, chunked.chunks > 1);
  verify_or_throw(graph, "sequence-chunks");
  if (chunked.fused) fuse_optimizer(graph, graph.find_program("train_step"));
  if (chunked.offload) chunked.offload(graph);
  verify_or_throw(graph, "the passes after sequence-chunks");
  Liveness liveness = analyze_liveness(graph, graph.bounds(), request.facts);
  if (chunked.length > 0) book_scratch(graph, bucket_bindings(graph, chunked.length), request.facts, liveness);
  AssignmentOptions options;
  options.alignment = request.facts.alignment;
  options.exact_nodes = 0;
  const Arenas arenas = assign_arenas(liveness, options);
  emit_programs(graph, graph.bounds(), liveness, arenas, request, plan);
  if (chunked.length == 0) return;
  emit_buckets(graph, liveness, arenas, request, {&chunked.length, 1}, plan);
  for (const char* name : {"train_step", "evaluate"}) {
    std::erase_if(plan.programs, [&](const PlanProgram& program) { return program.name == name; });
    for (PlanProgram& program : plan.programs)
      if (program.name == bucket_program(name, chunked.length)) program.name = name;
  }
}

using ChangePlan = std::function<void(const PlanRequest&, Plan&)>;

inline ChangePlan in_chunks(int64_t chunks, Keep keep, bool fused = false) {
  return [=](const PlanRequest& request, Plan& plan) { remake(request, {chunks, keep, fused}, plan); };
}

}  // namespace headroom::test
