// The record of chunked-loss, and its setting for other techniques.
#pragma once

#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique chunked_loss;
}

// Rows of logits at a time; 0: all of a micro-batch.
inline int64_t loss_chunk_of(const Candidate& candidate) { return candidate[techniques::chunked_loss].count; }

}  // namespace headroom
