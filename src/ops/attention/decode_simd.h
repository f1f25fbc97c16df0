// Attention of one query per batch row against a cache: no tiles, as every key is used once per head.
#pragma once

#include "ops/attention/forward_driver.h"

namespace headroom {

constexpr int kDecodeHeads = 4;  // most of one item

// Heads that share a chunk of keys, against it.
struct DecodeItem {
  int heads;
  const void* q;  // heads follow one another
  DType q_dtype;
  const void* k;  // the chunk's first row; rows are `stride` elements apart
  const void* v;
  DType kv_dtype;  // i8: a head is its codes and their scale (paged_attention/int8_heads.h)
  int64_t stride;
  int64_t count;
  int64_t dim;
  float scale;    // of the scores, base-2 domain; with a cap: before it, in units of the cap
  float softcap;  // base-2 domain, 0 = none
  float* o;       // of the first head; the next one's is o_stride further
  int64_t o_stride;
  float* maximum;
  float* sum;
  int64_t part_stride;  // of maximum and sum
};

// The item's partial result. At most kDecodeChunk keys and kMaxFastDim elements of a head.
void attend_chunk(const DecodeItem& item);

constexpr int kTileQueries = 4;  // rows of a tile

// Attention of several rows, each with its own heads, to the same keys, which are read and transposed once. A row's
// partial result has the bits that attend_chunk() gives it.
class DecodeTile {
 public:
  // Copies and scales the queries of the item's heads, as many of each row. At most kTileQueries rows.
  void add_row(const DecodeItem& item);
  // `items`: one for each row, in order, which differ in where their results go.
  void attend(const DecodeItem* items) const;

 private:
  int rows_ = 0;
  alignas(64) float queries_[kTileQueries * kDecodeHeads * kMaxFastDim];
};

// Whether tiles of heads of so many elements are made on this machine.
bool tiles_queries(int64_t dim);

// Joins the partial results of one head, chunk after chunk, into `to`. Chunks are `width` floats apart in o.
void join_chunks(const float* o, const float* maximum, const float* sum, int64_t chunks, int64_t width, int64_t dim,
                 void* to, DType dtype);

// shape.queries is 1, call.lse null, call.scratch holds a DecodeBlock. The keys are cut into chunks of kDecodeChunk
// that are joined in order, so the result does not depend on the team.
void run_decode(const ForwardCall& call);

}  // namespace headroom
