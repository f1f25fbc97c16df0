// The record of chunked-loss, and its setting for other techniques.
#pragma once

#include <vector>

#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique chunked_loss;
}

// Rows of logits at a time; 0: all of a micro-batch.
inline int64_t loss_chunk_of(const Candidate& candidate) { return candidate[techniques::chunked_loss].count; }
inline void set_loss_chunk_of(Candidate& candidate, int64_t rows) { candidate[techniques::chunked_loss].count = rows; }
// The numbers of rows that make the same graph, ascending.
std::vector<int64_t> loss_chunks(const PlanRequest& request, const Candidate& candidate);

}  // namespace headroom
