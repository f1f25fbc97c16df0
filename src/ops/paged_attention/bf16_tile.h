// A chunk of keys and values, arranged once for all queries that attend to it with bf16 dot products or on AMX tiles.
#pragma once

#include <cstdint>

#include "ops/attention/decode_simd.h"
#include "ops/paged_attention/scratch.h"

namespace headroom {

constexpr int64_t kQueryTile = 16;  // queries in an AMX tile

// Queries and where their partial results go.
struct Bf16Queries {
  const uint16_t* q;  // `count` rows of the padded width, followed by any up to a multiple of kQueryTile
  int64_t count;
  const int64_t* keys;    // of the chunk, which each query sees: so many from the first on
  float* const* o;        // of each query: [padded width]
  float* const* maximum;  // in the base-2 domain
  float* const* sum;
};

class Bf16Chunk {
 public:
  Bf16Chunk(int64_t dim, const ScoreScale& scores) : dim_(dim), width_(padded_dim(dim)), scores_(scores) {}

  // Copies and arranges the keys and values of `count` positions, at most kPagedBf16Chunk.
  void load(const uint16_t* const* k, const uint16_t* const* v, int64_t count);
  // Computes the partial results of queries. A query's bits don't depend on the others, nor on keys that it does not
  // see, if these and their values are numbers.
  void attend(const Bf16Queries& queries) const;
  // The same on AMX tiles.
  void attend_on_tiles(const Bf16Queries& queries) const;
  // Copies one row's queries, `heads` of them, to rows of the padded width.
  void copy_queries(const void* q, int64_t heads, uint16_t* to) const;
  int64_t width() const { return width_; }

 private:
  static constexpr int64_t kElements = kPagedBf16Chunk * kMaxFastDim;

  int64_t dim_, width_;
  ScoreScale scores_;
  int64_t count_ = 0;
  alignas(64) uint16_t k_[kElements];  // [16 keys][pairs of elements][key]
  alignas(64) uint16_t v_[kElements];  // [32 elements][pairs of keys][element]
};

}  // namespace headroom
