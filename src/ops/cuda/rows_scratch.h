// How kernels that reduce over rows distribute the rows to threads, and the scratch of sums over all rows. Depends only
// on the shape, so that results depend neither on the device nor on its load. Plain C++17, because launchers use it
// too.
#pragma once

#include <cstdint>

namespace headroom::cuda {

constexpr int kRowRun = 8;   // consecutive elements per thread
constexpr int kRowRuns = 2;  // runs that a thread holds in registers
constexpr int kMostRowLanes = 512;

// Threads that share a row of `width`: 8, 16 or 32 (several rows per block), or a whole block, a multiple of 32. Two
// runs per thread keep enough loads in flight, and rows of up to 8192 elements are read once.
inline int row_lanes(int64_t width) {
  const int64_t runs = (width + kRowRun - 1) / kRowRun;
  if (runs <= 8) return 8;
  if (runs <= 16) return 16;
  if (runs <= 64) return 32;
  const int64_t lanes = ((runs + kRowRuns - 1) / kRowRuns + 31) / 32 * 32;
  return lanes < kMostRowLanes ? static_cast<int>(lanes) : kMostRowLanes;
}
inline int row_block(int64_t width) { return row_lanes(width) <= 32 ? 256 : row_lanes(width); }

// Rows whose sums one block computes: at least 16, and enough to keep all blocks together below 128 Ki threads, which
// fills the largest GPUs and bounds the scratch (8 MiB per vector up to a width of 8192).
inline int64_t rows_per_chunk(int64_t rows, int64_t width) {
  const int64_t most = (int64_t{1} << 17) / row_block(width), needed = (rows + most - 1) / most;
  return needed < 16 ? 16 : needed;
}
inline int64_t row_chunk_count(int64_t rows, int64_t width) {
  const int64_t chunk = rows_per_chunk(rows, width);
  return (rows + chunk - 1) / chunk;
}

// Bytes for `vectors` partial sums of `width` floats per chunk: [chunk][vector][width].
inline int64_t row_sums_bytes(int64_t rows, int64_t width, int64_t vectors) {
  return row_chunk_count(rows, width) * vectors * width * 4;
}

}  // namespace headroom::cuda
