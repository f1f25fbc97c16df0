// Launcher of the device code of split and concat.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

constexpr int kMostParts = 8;

// Columns of a joined array [rows, stride] and the parts to which they belong, in units of `unit` bytes, a power of two
// up to 16 to which every address is aligned.
struct ColumnParts {
  void* joined = nullptr;
  void* part[kMostParts] = {};         // [rows, its columns]; null: zeros when joining
  int64_t begin[kMostParts + 1] = {};  // start of each part in the joined row; begin[parts] is the end
  int64_t rows = 0;
  int64_t stride = 0;
  int parts = 0;
};

// Copies the parts into the joined array with `join`, otherwise out of it.
void launch_column_parts(const ColumnParts& args, int unit, bool join, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
