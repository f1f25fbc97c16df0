// Scratch of the kernels of attention_paged, one formula for the plan and for the kernels that carve it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ir/op.h"
#include "ops/attention/scratch.h"
#include "ops/cpu/capabilities.h"
#include "ops/paged_attention/shape.h"

namespace headroom {

constexpr int64_t kPagedHeads = 4;     // the most heads of one item of the vector kernels
constexpr int64_t kPagedAmxHeads = 8;  // of the kernel on AMX tiles, which arranges keys and values for all of them

constexpr int64_t kPagedQueries = 16;     // that a thread of the fp32 kernel attends together, at most
constexpr int64_t kPagedBf16Tile = 16;    // rows, of the kernel with bf16 dot products
constexpr int64_t kPagedAmxRows = 32;     // of that on AMX tiles, at most
constexpr int64_t kPagedAmxQueries = 64;  // of these rows, about as many
constexpr int64_t kPagedBf16Chunk = 64;

// How a kernel cuts a call: the keys of a sequence at multiples of `chunk`, and the rows that a thread attends
// together.
struct PagedCut {
  int64_t chunk = 1;
  int64_t rows = 1;
  int64_t few = 4;              // items for each thread up to which the threads divide the chunks of all items
  int64_t heads = kPagedHeads;  // of an item, at most
};
inline int64_t paged_heads(const PagedShape& shape, const PagedCut& cut) { return std::min(shape.group(), cut.heads); }
// A chunk lies in one block of the pool.
inline PagedCut simd_cut(const PagedShape& shape) {
  return {std::min(shape.block_tokens, kDecodeChunk), kPagedQueries / std::min(shape.group(), kPagedHeads)};
}
inline PagedCut bf16_cut() { return {kPagedBf16Chunk, kPagedBf16Tile, kPagedBf16Tile}; }
inline PagedCut amx_cut(const PagedShape& shape) {
  const int64_t rows = kPagedAmxQueries / std::min(shape.group(), kPagedAmxHeads);
  return {kPagedBf16Chunk, std::min(kPagedAmxRows, rows), kPagedBf16Tile, kPagedAmxHeads};
}

// Whether queries, keys and values suit the kernel with bf16 products.
inline bool paged_in_bf16(const PagedShape& shape, DType q, DType kv, const DeviceFacts& facts) {
  return facts.capabilities.has(kAvx512Bf16) && q == DType::bf16 && kv == DType::bf16 && shape.dim <= kMaxFastDim;
}

// The reference kernel keeps one row of doubles per thread.
inline int64_t paged_reference_bytes(const PagedShape& shape) { return align_up(shape.dim * 8, 64); }

// The most chunks that a row sees: one more than its window fills, as the window may begin inside a chunk.
inline int64_t paged_chunks(const PagedShape& shape, int64_t chunk) {
  const int64_t all = (shape.positions() + chunk - 1) / chunk;
  return shape.window > 0 ? std::min(all, (shape.window + chunk - 1) / chunk + 1) : all;
}
// Items of a row: groups of heads that read one kv head.
inline int64_t paged_parts(const PagedShape& shape, const PagedCut& cut) {
  return (shape.group() + cut.heads - 1) / cut.heads * shape.kv_heads;
}
inline int64_t paged_items(const PagedShape& shape, const PagedCut& cut) {
  return shape.rows * paged_parts(shape, cut);
}
// Few items: the threads divide their chunks.
inline bool shares_chunks(const PagedShape& shape, const PagedCut& cut, int64_t threads) {
  return paged_items(shape, cut) <= cut.few * threads;
}
// Items whose partial results are kept at once: all of a few items, else a tile for each thread.
inline int64_t paged_slots(const PagedShape& shape, const PagedCut& cut, int64_t threads) {
  return shares_chunks(shape, cut, threads) ? paged_items(shape, cut) : cut.rows * threads;
}
inline int64_t paged_slot_floats(const PagedShape& shape, const PagedCut& cut) {
  return align_up(paged_heads(shape, cut) * paged_chunks(shape, cut.chunk) * (padded_dim(shape.dim) + 2), 16);
}
inline int64_t paged_partial_bytes(const PagedShape& shape, const PagedCut& cut, int64_t threads) {
  return paged_slots(shape, cut, threads) * paged_slot_floats(shape, cut) * 4;
}

// Enough for the other kernels too where one with bf16 products may run.
inline int64_t paged_scratch(const OpCall& call, const DeviceFacts& facts) {
  const PagedShape shape = paged_shape(call);
  const int64_t reference = paged_reference_bytes(shape) * facts.threads;
  if (shape.dim > kMaxFastDim) return reference;
  int64_t partials = paged_partial_bytes(shape, simd_cut(shape), facts.threads);
  if (paged_in_bf16(shape, call.inputs[PagedInputs::q].dtype, call.inputs[PagedInputs::keys].dtype, facts)) {
    partials = std::max(partials, paged_partial_bytes(shape, bf16_cut(), facts.threads));
    if (facts.capabilities.has(kAmx))
      partials = std::max(partials, paged_partial_bytes(shape, amx_cut(shape), facts.threads));
  }
  return std::max(reference, partials);
}

}  // namespace headroom
