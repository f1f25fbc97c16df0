// What one thread does for the loss on AMX tiles: its range of the vocabulary against all rows of a chunk.
#pragma once

#include "ops/cpu/blocked_matmul.h"
#include "ops/linear_cross_entropy/tiled.h"

namespace headroom {

struct TiledPass {
  TiledLoss cut;  // rows: those of this chunk
  TiledChunk chunk;
  TiledCell cell;
  const TileKernel* tiles = nullptr;
  const void* w = nullptr;      // [vocabulary, 32 hidden]: f32 where `cut` says that it is rounded, else bf16
  int64_t first = 0, last = 0;  // strips of the vocabulary
  int64_t hidden() const { return cut.hidden * 32; }
};

// Logits, and of each row: the largest, the sum of its numerators and, where it lies in the range, the target's logit.
// For the gradient the numerators, and their product with w. A row's reference is its first strip's largest logit; it
// is raised when a numerator would exceed 2^60, and everything of the row that was computed before is scaled.
void run_vocabulary(const TiledPass& pass);

// x[row] * factors[row] of 32 rows from `row_tile` on as right operands; rows without a target, and those behind the
// chunk's `rows`, become zero.
void scale_rows(const TiledPass& pass, const uint16_t* x, int64_t rows, int64_t row_tile);

// sums[vocabulary, hidden] [+]= numerators^T scaled, in the range.
void multiply_numerators(const TiledPass& pass, bool overwrite, float* sums);

// Rows of dx from the shares of `cells`, and what the targets add: slope * w[target].
void store_dx(const TiledPass* cells, int64_t count, int64_t rows, int64_t row_tile, uint16_t* dx);

// sums[target] += slope * x[row] for the targets in the range, row after row.
void add_targets(const TiledPass& pass, const uint16_t* x, int64_t rows, float* sums);

}  // namespace headroom
