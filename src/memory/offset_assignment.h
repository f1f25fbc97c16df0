// Gives every buffer of a timeline an offset in one arena (docs/offset_assignment.md).
#pragma once

#include <cstdint>
#include <span>

#include "memory/buffer.h"

namespace headroom {

// Effort is counted in passes, entries visited and search nodes, never in time: the result is a pure function of
// buffers and options.
struct AssignmentOptions {
  int64_t alignment = 64;
  int64_t capacity = 0;            // > 0: decision mode, stop as soon as peak <= capacity
  int64_t effort_iterations = 32;  // improvement passes after the greedy portfolio; 0 leaves the best greedy one
  int64_t exact_nodes = 200'000;   // nodes of the exact search, run on small timelines only; 0 switches it off
  double good_enough = 1.001;      // minimise mode: stop at peak <= good_enough * lower bound
};

// Assigns by a portfolio of greedy orders, then squeaky-wheel improvement, then exact search, each stage only if the
// one before missed the target. Returns the best assignment found: in decision mode the caller compares its peak with
// the capacity. Pinned buffers keep their offsets. If nothing is pinned, buffers that are live throughout lie at the
// bottom, in input order. Thread-safe.
// Throws Error(usage) naming the buffer for: upper <= lower, negative size, a pin below -1 or not a multiple of the
// alignment, pinned buffers that overlap, sums above 2^62 bytes; and for an alignment < 1.
OffsetAssignment assign_offsets(std::span<const Buffer> buffers, const AssignmentOptions& options = {});

}  // namespace headroom
