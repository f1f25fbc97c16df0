// How sums over rows are distributed to blocks, and their scratch. Depends only on the shape, so that the order of a
// sum depends neither on the device nor on its load. Plain C++17, because the launcher uses it too.
#pragma once

#include <cstdint>

namespace headroom::cuda {

constexpr int kSumColumns = 256;  // per block: one warp with eight neighbouring columns per lane
constexpr int kSumRows = 64;      // per block, at least
constexpr int kSumBlocks = 1024;  // as a goal: several for each multiprocessor of the largest GPUs

// Rows that one block adds.
inline int64_t sum_rows(int64_t rows, int64_t cols) {
  const int64_t across = (cols + kSumColumns - 1) / kSumColumns;
  const int64_t wanted = across >= kSumBlocks || across < 1 ? 1 : kSumBlocks / across;
  const int64_t each = (rows + wanted - 1) / wanted;
  return each < kSumRows ? kSumRows : each;
}

// Parts into which the rows are divided, at least one. If there are several, a separate step adds their sums.
inline int64_t sum_parts(int64_t rows, int64_t cols) {
  const int64_t each = sum_rows(rows, cols);
  return rows <= each ? 1 : (rows + each - 1) / each;
}

// Bytes of the parts' sums, f32 [part][cols]: at most about 1 MiB, or 4 bytes per column.
inline int64_t sum_scratch_bytes(int64_t rows, int64_t cols) {
  const int64_t parts = sum_parts(rows, cols);
  return parts > 1 ? parts * cols * 4 : 0;
}

}  // namespace headroom::cuda
