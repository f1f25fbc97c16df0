// One thread's part of the loss on AMX tiles: its range of the vocabulary for all rows of a chunk.
#pragma once

#include "ops/cpu/blocked_matmul.h"
#include "ops/linear_cross_entropy/tiled.h"

namespace headroom {

struct TiledPass {
  TiledLoss cut;  // rows: those of this chunk
  TiledChunk chunk;
  TiledCell cell;
  const TileKernel* tiles = nullptr;
  const void* w = nullptr;      // [vocabulary, 32 hidden]: f32 if cut.rounds, else bf16
  int64_t first = 0, last = 0;  // strips of the vocabulary
  int64_t hidden() const { return cut.hidden * 32; }
};

// Computes the logits and, for each row, the largest one, the sum of its numerators and, if the target is in the range,
// its logit. For the gradient also the numerators, and their product with w. A row's reference is the largest logit of
// its first strip; if a numerator would exceed 2^60, the reference is raised and the row's earlier results are scaled.
void run_vocabulary(const TiledPass& pass);

// Writes x[row] * factors[row] of the 32 rows of tile `row_tile` as right operands; rows without a target, and rows
// past the chunk's `rows`, become zero.
void scale_rows(const TiledPass& pass, const uint16_t* x, int64_t rows, int64_t row_tile);

// sums[vocabulary, hidden] [+]= numerators[vocabulary, rows] times the rows of scale_rows(), in the range.
void multiply_numerators(const TiledPass& pass, bool overwrite, float* sums);

// Writes rows of dx: the sum of the shares of `cells`, plus slope * w[target].
void store_dx(const TiledPass* cells, int64_t count, int64_t rows, int64_t row_tile, uint16_t* dx);

// sums[target] += slope * x[row] for the targets in the range, row after row.
void add_targets(const TiledPass& pass, const uint16_t* x, int64_t rows, float* sums);

}  // namespace headroom
