// How sums over rows are dealt to blocks, and their scratch. Functions of the shape alone, so that the order of a sum
// depends on neither the device nor its load. Plain C++17: the launcher uses it too.
#pragma once

#include <cstdint>

namespace headroom::cuda {

constexpr int kSumColumns = 256;  // of a block: a warp with eight neighbouring columns a lane
constexpr int kSumRows = 64;      // of a block, at least
constexpr int kSumBlocks = 1024;  // wanted: several for each multiprocessor of the largest GPUs

// Rows that one block adds up.
inline int64_t sum_rows(int64_t rows, int64_t cols) {
  const int64_t across = (cols + kSumColumns - 1) / kSumColumns;
  const int64_t wanted = across >= kSumBlocks || across < 1 ? 1 : kSumBlocks / across;
  const int64_t each = (rows + wanted - 1) / wanted;
  return each < kSumRows ? kSumRows : each;
}

// Parts into which the rows are cut, at least one; their sums are joined in a step of their own where there are
// several.
inline int64_t sum_parts(int64_t rows, int64_t cols) {
  const int64_t each = sum_rows(rows, cols);
  return rows <= each ? 1 : (rows + each - 1) / each;
}

// Bytes for the parts' sums, f32 [part][cols]: about 1 MiB at most, or 4 bytes a column.
inline int64_t sum_scratch_bytes(int64_t rows, int64_t cols) {
  const int64_t parts = sum_parts(rows, cols);
  return parts > 1 ? parts * cols * 4 : 0;
}

}  // namespace headroom::cuda
