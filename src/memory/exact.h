// Exact offsets for small timelines by branch and bound over canonical solutions (docs/offset_assignment.md).
#pragma once

#include <cstdint>
#include <span>

#include "memory/buffer.h"

namespace headroom {

enum class ExactStatus {
  solved,      // an assignment is attached
  infeasible,  // proven: none exists
  node_limit,  // gave up
};

struct ExactResult {
  ExactStatus status = ExactStatus::node_limit;
  OffsetAssignment assignment;  // if solved, and from assign_optimally() always
  int64_t nodes = 0;            // nodes expanded
};

// Decides whether the buffers fit into `capacity` bytes. More than 2048 buffers that are not empty give node_limit.
// Deterministic; thread-safe. Throws Error(usage) for a buffer that assign_offsets() refuses and for pinned buffers.
ExactResult pack_within(std::span<const Buffer> buffers, int64_t alignment, int64_t capacity, int64_t node_limit);

// An assignment with the smallest peak. `node_limit` bounds the whole run; the status is node_limit if optimality was
// not proven, and the assignment is then the best one found.
ExactResult assign_optimally(std::span<const Buffer> buffers, int64_t alignment, int64_t node_limit);

}  // namespace headroom
