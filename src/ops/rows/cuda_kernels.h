// Launcher of the device code of take_rows and put_rows.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Of each of `sequences` runs of `stride` units the `count` from `begin` on; the part has them run by run. Units of
// `unit` bytes, a power of two up to 16 to which every address is aligned.
struct RowsOfSequences {
  void* whole = nullptr;
  void* part = nullptr;
  int64_t sequences = 0;
  int64_t stride = 0;
  int64_t begin = 0;
  int64_t count = 0;
};

// Copies the part into the whole, or out of it.
void launch_rows(const RowsOfSequences& args, int unit, bool put, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
