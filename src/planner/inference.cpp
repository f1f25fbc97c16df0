#include "planner/inference.h"

#include <utility>

#include "passes/chunked_loss.h"
#include "passes/micro_batch.h"
#include "planner/finished_generation.h"
#include "planner/pipeline.h"
#include "planner/techniques/micro_batch.h"
#include "planner/weight_placement.h"

namespace headroom {
namespace {

// Sequences of a micro-batch, and rows of a loss chunk.
struct EvaluationSize {
  int64_t batch = 1;
  int64_t chunk = 64;
};

std::vector<EvaluationSize> evaluation_sizes(const PlanRequest& request) {
  std::vector<EvaluationSize> sizes;
  for (int64_t batch = request.global_batch; batch >= 1; batch = batch == 1 ? 0 : batch / 2)
    for (const int64_t chunk : {int64_t{1024}, int64_t{256}, int64_t{64}})
      if (chunk <= batch * request.seq_length || chunk == 64) sizes.push_back({batch, chunk});
  return sizes;
}

}  // namespace

Plan plan_evaluation(const PlanRequest& request) {
  const Graph assembled = assemble_evaluation(request, true);
  const std::vector<EvaluationSize> sizes = evaluation_sizes(request);
  const auto variant = [&](size_t which, bool verify) {
    const EvaluationSize& size = sizes[which];
    Variant out{assembled, size.batch, size.chunk, {{"evaluate", 1, accumulation_steps(request, size.batch)}}};
    run_pass(kMicroBatch, out.graph, verify, nullptr, [&](Graph& graph) { set_micro_batch(graph, size.batch); });
    run_pass(kChunkedLoss, out.graph, verify, nullptr, [&](Graph& graph) { set_loss_chunk(graph, size.chunk); });
    return out;
  };
  return place_weights(request, sizes.size(), variant, "evaluate");
}

Plan plan_generation(const PlanRequest& request, const GenerationWork& work, std::span<const int64_t> chunks,
                     const std::function<Graph(int64_t chunk)>& build) {
  const std::vector<std::string> programs{"prefill", "decode"};
  const auto variant = [&](size_t which, bool verify) {
    const int64_t chunk = chunks[which], parts = (work.prompt_tokens + chunk - 1) / chunk;
    return Variant{finished_generation(request, build(chunk), programs, ProductRows::any, {}, verify),
                   1,
                   chunk,
                   {{"prefill", parts, 1}, {"decode", work.new_tokens, 1}}};
  };
  return place_weights(request, chunks.size(), variant, "decode");
}

Plan plan_texts(const PlanRequest& request, Graph graph, std::span<const std::string> programs, int64_t chunk) {
  check_untrained_pins(request);
  const Variant variant{
      finished_generation(request, std::move(graph), programs, ProductRows::any, {}, true), 1, chunk, {}};
  return lay_out(request, variant, "decode");
}

}  // namespace headroom
