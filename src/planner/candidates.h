// Which candidates are worth looking at: a small grid that does not depend on the budget.
#pragma once

#include <vector>

#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

// Rows per loss chunk when the arithmetic is fixed, and the choices otherwise (0 = all rows).
inline constexpr int64_t kFixedLossChunk = 256;

// Whether a part of the loss is no sum over sequences, as the balance of experts' loads: another micro-batch is another
// loss, so that it is the global batch unless it is pinned.
bool loss_spans_batch(const PlanRequest& request);

std::vector<int64_t> micro_batch_choices(const PlanRequest& request);
std::vector<int64_t> loss_chunk_choices(const PlanRequest& request, int64_t rows);
// Per block: what to keep. Activations of late layers live shortest, so the first layers are treated first.
std::vector<std::vector<Keep>> keep_choices(const PlanRequest& request, int64_t blocks);
// A few of these, to combine with what is kept on the host.
std::vector<std::vector<Keep>> keeps_beside(const PlanRequest& request, const Offload& offload, int64_t blocks);
std::vector<bool> weight_copy_choices(const PlanRequest& request);
bool fuses_optimizer(const PlanRequest& request, int64_t micro_batch);

// The shorter sequence lengths that get programs of their own; none unless the request asks for buckets.
std::vector<int64_t> bucket_choices(const PlanRequest& request);

// The candidate of least memory among the choices.
Candidate most_frugal(const PlanRequest& request);
// Blocks (layers) of a forward graph.
int64_t block_count(const Graph& graph);

// "8 x block-input, 22 x keep-all"
std::string describe_keep(const std::vector<Keep>& keep);

}  // namespace headroom
