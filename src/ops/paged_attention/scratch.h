// Scratch of the kernels of attention_paged, one formula for the plan and for the kernels that carve it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ir/op.h"
#include "ops/attention/scratch.h"
#include "ops/paged_attention/shape.h"

namespace headroom {

constexpr int64_t kPagedHeads = 4;  // the most heads of one item of the SIMD kernel

constexpr int64_t kPagedTile = 4;  // rows that a thread attends together

// The reference kernel keeps one row of doubles per thread.
inline int64_t paged_reference_bytes(const PagedShape& shape) { return align_up(shape.dim * 8, 64); }

// The SIMD kernel cuts the keys of a sequence at multiples of this position.
inline int64_t paged_chunk(const PagedShape& shape) { return std::min(shape.block_tokens, kDecodeChunk); }
// The most chunks that a row sees: one more than its window fills, as the window may begin inside a chunk.
inline int64_t paged_chunks(const PagedShape& shape) {
  const int64_t chunk = paged_chunk(shape), all = (shape.positions() + chunk - 1) / chunk;
  return shape.window > 0 ? std::min(all, (shape.window + chunk - 1) / chunk + 1) : all;
}
// Items of a row: groups of at most kPagedHeads heads that read one kv head.
inline int64_t paged_parts(const PagedShape& shape) {
  return (shape.group() + kPagedHeads - 1) / kPagedHeads * shape.kv_heads;
}
// Items whose partial results are kept at once: all items if there are few, whose chunks the threads divide; else a
// tile for each thread.
inline int64_t paged_slots(const PagedShape& shape, int64_t threads) {
  return std::max(threads, std::min(shape.rows * paged_parts(shape), kPagedTile * threads));
}
inline int64_t paged_slot_floats(const PagedShape& shape) {
  return align_up(kPagedHeads * paged_chunks(shape) * (padded_dim(shape.dim) + 2), 16);
}

inline int64_t paged_scratch(const PagedShape& shape, const DeviceFacts& facts) {
  const int64_t partials =
      shape.dim > kMaxFastDim ? 0 : paged_slots(shape, facts.threads) * paged_slot_floats(shape) * 4;
  return std::max(paged_reference_bytes(shape) * facts.threads, partials);
}

}  // namespace headroom
