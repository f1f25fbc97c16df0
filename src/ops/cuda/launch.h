// How device code is launched, shared by the launchers in */cuda_*.cu (C++17, nvcc) and their callers. Plain types
// only, because nvcc's front end does not compile all of this library's C++20.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace headroom {

using CudaStream = CUstream_st*;  // cudaStream_t without its header

// What a launch does: `load` only loads the kernel's code onto the device, so that a plan's first step allocates no
// more than its second.
enum class LaunchMode { run, load };
// The calling thread's mode.
LaunchMode launch_mode();
void set_launch_mode(LaunchMode mode);

// While this object lives, launches of this thread load code and queue nothing.
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

// The floating-point types of kernels.
enum class FloatType { f32, bf16, f16 };

struct Grid {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
  int block = 256;           // threads
  int64_t shared_bytes = 0;  // dynamic shared memory
};

// Blocks per multiprocessor for a grid-stride loop. These are whole waves whether 2, 3, 4, 6 or 8 blocks of the kernel
// are resident at a time, which depends on its registers and the architecture.
constexpr int64_t kBlocksOfWaves = 24;

// The grid of a grid-stride loop over `items`: whole waves of blocks, but no more blocks than the items need.
inline Grid grid_over(int64_t items, int multiprocessors, int block = 256) {
  const int64_t needed = (items + block - 1) / block, most = int64_t{multiprocessors} * kBlocksOfWaves;
  Grid grid;
  grid.x = needed < 1 ? 1 : needed < most ? needed : most;
  grid.block = block;
  return grid;
}

// Throws Error(run) with the driver's message unless `status` (cudaError_t) is 0.
void check_cuda(int status, const char* what);
// Throws InternalError when no device supports such a grid.
void check_grid(const Grid& grid);
// Loads a kernel's code (its host address) onto the device and permits the grid's shared memory. Throws Error(run) when
// the device cannot run such a block.
void load_kernel(const void* code, const Grid& grid);

}  // namespace cuda
}  // namespace headroom
