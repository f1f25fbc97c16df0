// Launcher of the device code of take_rows and put_rows.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Units [begin, begin + count) of each of `sequences` runs of `stride` units in the whole; the part has them run after
// run. A unit has `unit` bytes, a power of two up to 16 to which every address is aligned.
struct RowsOfSequences {
  void* whole = nullptr;
  void* part = nullptr;
  int64_t sequences = 0;
  int64_t stride = 0;
  int64_t begin = 0;
  int64_t count = 0;
};

// Copies the part into the whole with `put`, otherwise out of it.
void launch_rows(const RowsOfSequences& args, int unit, bool put, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
