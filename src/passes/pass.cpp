#include "passes/pass.h"

#include <chrono>

#include "ir/verify.h"
#include "passes/bf16_mixed.h"
#include "passes/bf16_true.h"
#include "passes/chunked_loss.h"
#include "passes/freeze.h"
#include "passes/fused_optimizer.h"
#include "passes/length_buckets.h"
#include "passes/lora.h"
#include "passes/matmul_precision.h"
#include "passes/micro_batch.h"
#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "passes/packing.h"
#include "passes/prefetch.h"
#include "passes/recompute.h"

namespace headroom {
namespace {

int64_t listed_nodes(const Graph& graph) {
  int64_t count = 0;
  for (const Region& region : graph.regions) count += static_cast<int64_t>(region.nodes.size());
  return count;
}

}  // namespace

std::string_view kind_name(TechniqueKind kind) {
  constexpr std::string_view names[] = {"exact", "reassociating", "data-order", "lossy"};
  return names[static_cast<size_t>(kind)];
}

std::span<const PassInfo* const> all_passes() {
  static constexpr const PassInfo* kAll[] = {&kPacking,
                                             &kLengthBuckets,
                                             &kFreeze,
                                             &kLora,
                                             &kBf16Mixed,
                                             &kBf16True,
                                             &kMatmulPrecision,
                                             &kMicroBatch,
                                             &kChunkedLoss,
                                             &kRecompute,
                                             &kFusedOptimizer,
                                             &kOffloadActivations,
                                             &kOffloadOptimizer,
                                             &kOffloadGradients,
                                             &kOffloadParameters,
                                             &kPrefetch};
  return kAll;
}

void run_pass(const PassInfo& info, Graph& graph, bool verify, std::vector<PassTrace>* trace,
              const std::function<void(Graph&)>& body) {
  const auto begin = std::chrono::steady_clock::now();
  PassTrace row{info.name, 0, trace ? listed_nodes(graph) : 0, 0};
  body(graph);
  if (verify) verify_or_throw(graph, info.name);
  if (!trace) return;
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  row.nodes_after = listed_nodes(graph);
  trace->push_back(row);
}

}  // namespace headroom
