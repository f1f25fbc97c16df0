// Launcher of the device code of split and concat.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

constexpr int kMostParts = 8;

// Columns of a joined array [rows, stride] and the parts they belong to, in units of `unit` bytes, a power of two up to
// 16 to which every address is aligned.
struct ColumnParts {
  void* joined = nullptr;
  void* part[kMostParts] = {};         // [rows, its columns]; null: zeros, when they are joined
  int64_t begin[kMostParts + 1] = {};  // of each part in the joined row; begin[parts] is the end
  int64_t rows = 0;
  int64_t stride = 0;
  int parts = 0;
};

// Copies the parts into the joined array, or out of it.
void launch_column_parts(const ColumnParts& args, int unit, bool join, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
