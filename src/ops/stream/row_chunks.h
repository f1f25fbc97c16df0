// How kernels that sum over rows (gradients of norm weights) cut the rows: a pure function of the shape.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "ir/type.h"

namespace headroom {

// The rows of x[..., seq, H] in chunks of at most kRows consecutive rows of one sequence. Sums are taken per chunk and
// joined in chunk order, so that they depend neither on the team's size nor on how a batch is cut into micro-batches.
struct RowChunks {
  static constexpr int64_t kRows = 64;
  int64_t sequences = 1;
  int64_t rows = 1;  // of one sequence

  int64_t per_sequence() const { return (rows + kRows - 1) / kRows; }
  int64_t count() const { return sequences * per_sequence(); }
  int64_t begin(int64_t chunk) const { return chunk / per_sequence() * rows + chunk % per_sequence() * kRows; }
  int64_t end(int64_t chunk) const { return std::min(begin(chunk) + kRows, (chunk / per_sequence() + 1) * rows); }
};

inline RowChunks row_chunks(std::span<const int64_t> dims) {
  RowChunks chunks;
  if (dims.size() >= 2) chunks.rows = dims[dims.size() - 2];
  for (size_t i = 0; i + 2 < dims.size(); ++i) chunks.sequences *= dims[i];
  return chunks;
}

// Scratch for `vectors` partial sums of width dims.back() per chunk, each aligned to 64 bytes.
inline int64_t partial_sum_bytes(std::span<const int64_t> dims, int64_t vectors) {
  return row_chunks(dims).count() * vectors * align_up(dims.back() * int64_t{sizeof(float)}, 64);
}

}  // namespace headroom
