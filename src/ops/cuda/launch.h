// How device code is launched: shared by the launchers in */cuda_*.cu (C++17, nvcc) and those who call them. Nothing
// but plain types: nvcc's front end does not take all of this library's C++20.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace headroom {

using CudaStream = CUstream_st*;  // cudaStream_t without its header

// What a launch does: `load` brings the kernel's code onto the device and queues nothing, so that a plan's first step
// allocates no more than its second.
enum class LaunchMode { run, load };
// Of this thread.
LaunchMode launch_mode();
void set_launch_mode(LaunchMode mode);

// While it lives, launches of this thread load code and queue nothing.
class LoadingOnly {
 public:
  LoadingOnly() { set_launch_mode(LaunchMode::load); }
  LoadingOnly(const LoadingOnly&) = delete;
  LoadingOnly& operator=(const LoadingOnly&) = delete;
  ~LoadingOnly() { set_launch_mode(before_); }

 private:
  LaunchMode before_ = launch_mode();
};

namespace cuda {

// The floating types that kernels take.
enum class FloatType { f32, bf16 };

struct Grid {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
  int block = 256;           // threads
  int64_t shared_bytes = 0;  // of dynamic shared memory
};

// Blocks of a grid-stride loop for each multiprocessor: whole waves, whether 2, 3, 4, 6 or 8 blocks of the kernel are
// resident at a time (which its registers and the architecture decide).
constexpr int64_t kBlocksOfWaves = 24;

// For a grid-stride loop over `items`: whole waves of blocks, never more than the items need.
inline Grid grid_over(int64_t items, int multiprocessors, int block = 256) {
  const int64_t needed = (items + block - 1) / block, most = int64_t{multiprocessors} * kBlocksOfWaves;
  Grid grid;
  grid.x = needed < 1 ? 1 : needed < most ? needed : most;
  grid.block = block;
  return grid;
}

// Throws Error(run) with the driver's words unless `status` (cudaError_t) is 0.
void check_cuda(int status, const char* what);
// Throws InternalError when no device can have such a grid.
void check_grid(const Grid& grid);
// Brings a kernel's code (its host address) onto the device and grants it the grid's shared memory. Throws Error(run)
// when the device cannot run such a block.
void load_kernel(const void* code, const Grid& grid);

}  // namespace cuda
}  // namespace headroom
