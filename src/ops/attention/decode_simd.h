// Attention of one query per batch row over a cache: without tiles, as every key is used once per head.
#pragma once

#include <numbers>

#include "ops/attention/forward_driver.h"

namespace headroom {

constexpr int kDecodeHeads = 4;  // most heads of one item

// What the products of queries and keys are multiplied by, in the base-2 domain.
struct ScoreScale {
  float scale;    // with a cap: before the cap, in units of it
  float softcap;  // 0 = none
  ScoreScale(double of, double cap)
      : scale(static_cast<float>(cap > 0 ? of / cap : of * std::numbers::log2e)),
        softcap(static_cast<float>(cap * std::numbers::log2e)) {}
};

// Heads that share a chunk of keys, and the chunk.
struct DecodeItem {
  int heads;
  const void* q;  // the heads' queries are contiguous
  DType q_dtype;
  const void* k;  // the chunk's first row; rows are `stride` elements apart
  const void* v;
  DType kv_dtype;  // i8: a head is its codes, then their scale (paged_attention/int8_heads.h)
  int64_t stride;
  int64_t count;
  int64_t dim;
  float scale, softcap;  // as ScoreScale has them
  float* o;              // of the first head; the next head's is o_stride floats further
  int64_t o_stride;
  float* maximum;
  float* sum;
  int64_t part_stride;  // of maximum and sum
};

// Computes the item's partial result. At most kDecodeChunk keys and kMaxFastDim elements of a head.
void attend_chunk(const DecodeItem& item);

constexpr int kTileQueries = 16;  // of all rows of a tile, at most

// Attention of several rows, each with its own heads, over the same keys, which are read and transposed once. A row's
// partial result is bitwise equal to that of attend_chunk().
class DecodeTile {
 public:
  // Copies and scales the queries of the item's heads; every row has as many heads. At most kTileQueries heads of all
  // rows.
  void add_row(const DecodeItem& item);
  // `items`: one per row, in order; they differ only in where their results go.
  void attend(const DecodeItem* items) const;

 private:
  int rows_ = 0;
  alignas(64) float queries_[kTileQueries * kMaxFastDim];
};

// Whether this machine uses tiles for heads of `dim` elements.
bool tiles_queries(int64_t dim);

// Joins the partial results of one head, in the order of chunks, into `to`. In o, chunks are `width` floats apart.
void join_chunks(const float* o, const float* maximum, const float* sum, int64_t chunks, int64_t width, int64_t dim,
                 void* to, DType dtype);

// Requires shape.queries 1, call.lse null, and a DecodeBlock in call.scratch. The keys are cut into chunks of
// kDecodeChunk that are joined in order, so the result does not depend on the team.
void run_decode(const ForwardCall& call);

}  // namespace headroom
