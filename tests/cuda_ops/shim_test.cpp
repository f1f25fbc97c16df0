// The shim itself: barriers, collectives, and the faults that it must find.
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mma.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom {
namespace {

using namespace cuda;

__global__ void sum_of_blocks(const float* x, float* sums, int64_t count) {
  __shared__ float slots[kWarp];
  float own = 0;
  for (int64_t i = first_index(); i < count; i += index_stride()) own += x[i];
  own = reduce_block(own, slots, 0.0f, Sum());
  if (threadIdx.x == 0) sums[blockIdx.x] = own;
}

__global__ void reverse_in_shared(const int* x, int* y, bool wait) {
  HR_DYNAMIC_SHARED(int, tile);
  tile[threadIdx.x] = x[threadIdx.x];
  if (wait) __syncthreads();
  y[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void half_waits() {
  if (threadIdx.x < 32) __syncthreads();
}

__global__ void two_barriers(int* x) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
    x[threadIdx.x] = 1;
  } else {
    __syncthreads();
    x[threadIdx.x] = 2;
  }
}

__global__ void different_shuffles(int* x) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane < 16)
    x[lane] = __shfl_xor_sync(kAllLanes, lane, 1);
  else
    x[lane] = __shfl_xor_sync(kAllLanes, lane, 2);
}

__global__ void write_shared(int index) {
  HR_DYNAMIC_SHARED(int, tile);
  tile[index] = static_cast<int>(threadIdx.x);
}

__global__ void load_four(const float* x, float* y) { store_floats(y, load_floats<4>(x)); }

__global__ void store_to_shared(const float* x) {
  HR_DYNAMIC_SHARED(float, tile);
  store_floats(tile, load_floats<4>(x));
}

__global__ void load_matrix(int offset) {
  HR_DYNAMIC_SHARED(Bf16, tile);
  uint32_t m[4];
  load_matrices(m, tile + threadIdx.x * 8 + offset);
}

// Two groups of copies; y gets what has arrived when at most `kUnderWay` groups are in progress.
template <int kUnderWay>
__global__ void copy_in_groups(const float* x, float* y) {
  HR_DYNAMIC_SHARED(float, tile);
  for (int i = 0; i < 2; ++i) {
    begin_copy(tile + 4 * i, x + 4 * i, true);
    end_copy_group();
  }
  await_copies<kUnderWay>();
  for (int i = 0; i < 8; ++i) y[i] = tile[i];
  await_copies<0>();
}

__global__ void copy_without_waiting(const float* x, int offset) {
  HR_DYNAMIC_SHARED(float, tile);
  begin_copy(tile, x + offset, true);
  end_copy_group();
}

class CudaShim : public testing::Test {
 protected:
  void TearDown() override {
    cuda_shim::set_order(cuda_shim::Order::forward);
    cuda_shim::demand_loading(false);
  }
};

TEST_F(CudaShim, BlocksReduceInTheSameWayInEveryOrder) {
  std::vector<float> x(5000), first(3), other(3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(i + 1);
  launch(sum_of_blocks, Grid{3, 1, 1, 96, 0}, nullptr, x.data(), first.data(), int64_t{5000});
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value);
  EXPECT_NEAR(static_cast<double>(first[0] + first[1] + first[2]), sum, 1e-5);
  for (auto order : {cuda_shim::Order::backward, cuda_shim::Order::shuffled}) {
    cuda_shim::set_order(order);
    launch(sum_of_blocks, Grid{3, 1, 1, 96, 0}, nullptr, x.data(), other.data(), int64_t{5000});
    EXPECT_EQ(first, other);
  }
}

TEST_F(CudaShim, AMissingBarrierShowsAsADifferenceBetweenOrders) {
  std::vector<int> x(64), y(64), z(64);
  for (int i = 0; i < 64; ++i) x[static_cast<size_t>(i)] = i;
  const Grid grid{1, 1, 1, 64, 256};
  launch(reverse_in_shared, grid, nullptr, x.data(), y.data(), true);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 63 - i);
  launch(reverse_in_shared, grid, nullptr, x.data(), y.data(), false);
  cuda_shim::set_order(cuda_shim::Order::backward);
  launch(reverse_in_shared, grid, nullptr, x.data(), z.data(), false);
  EXPECT_NE(y, z);
}

TEST_F(CudaShim, FindsBarriersThatNotAllThreadsReach) {
  EXPECT_THROW(launch(half_waits, Grid{1, 1, 1, 64, 0}, nullptr), InternalError);
  std::vector<int> x(64);
  EXPECT_THROW(launch(two_barriers, Grid{1, 1, 1, 64, 0}, nullptr, x.data()), InternalError);
  launch(half_waits, Grid{1, 1, 1, 32, 0}, nullptr);  // and continues afterwards
}

TEST_F(CudaShim, LoadModeRunsNothing) {
  std::vector<int> x(64, 5), y(64, 7);
  set_launch_mode(LaunchMode::load);
  launch(reverse_in_shared, Grid{1, 1, 1, 64, 256}, nullptr, x.data(), y.data(), true);
  set_launch_mode(LaunchMode::run);
  EXPECT_EQ(y[0], 7);
}

TEST_F(CudaShim, FindsLanesAtDifferentCollectives) {
  std::vector<int> x(32);
  EXPECT_THROW(launch(different_shuffles, Grid{1, 1, 1, 32, 0}, nullptr, x.data()), InternalError);
}

TEST_F(CudaShim, FindsWritesPastSharedMemory) {
  launch(write_shared, Grid{1, 1, 1, 32, 64}, nullptr, 15);
  EXPECT_THROW(launch(write_shared, Grid{1, 1, 1, 32, 64}, nullptr, 16), InternalError);
}

TEST_F(CudaShim, FindsAccessesThatAreNotAligned) {
  alignas(16) float x[12] = {}, y[12] = {};
  launch(load_four, Grid{1, 1, 1, 1, 0}, nullptr, x + 4, y + 8);
  EXPECT_THROW(launch(load_four, Grid{1, 1, 1, 1, 0}, nullptr, x + 2, y), InternalError);
  EXPECT_THROW(launch(load_four, Grid{1, 1, 1, 1, 0}, nullptr, x, y + 2), InternalError);
  launch(load_matrix, Grid{1, 1, 1, 32, 512}, nullptr, 0);
  EXPECT_THROW(launch(load_matrix, Grid{1, 1, 1, 32, 1024}, nullptr, 4), InternalError);
  EXPECT_THROW(launch(load_matrix, Grid{1, 1, 1, 32, 512}, nullptr, 8), InternalError);  // the last row is outside
  EXPECT_THROW(launch(copy_without_waiting, Grid{1, 1, 1, 1, 64}, nullptr, x, 1), InternalError);
}

TEST_F(CudaShim, FindsDeviceStoresToSharedMemory) {
  alignas(16) float x[4] = {};
  EXPECT_THROW(launch(store_to_shared, Grid{1, 1, 1, 1, 64}, nullptr, x), InternalError);
}

TEST_F(CudaShim, CopiesShowWhenTheirGroupIsAwaited) {
  alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
  launch(copy_in_groups<1>, Grid{1, 1, 1, 1, 32}, nullptr, x, y);
  EXPECT_EQ(y[3], 4.0f);
  EXPECT_NE(y[4], y[4]);
  launch(copy_in_groups<0>, Grid{1, 1, 1, 1, 32}, nullptr, x, y);
  EXPECT_EQ(y[7], 8.0f);
  EXPECT_THROW(launch(copy_without_waiting, Grid{1, 1, 1, 1, 64}, nullptr, x, 0), InternalError);
}

TEST_F(CudaShim, FindsKernelsThatWereNotLoaded) {
  const Grid small{1, 1, 1, 32, 64}, large{1, 1, 1, 32, 64 << 10};
  cuda_shim::demand_loading(true);
  EXPECT_THROW(launch(write_shared, small, nullptr, 0), InternalError);
  set_launch_mode(LaunchMode::load);
  launch(write_shared, small, nullptr, 0);
  set_launch_mode(LaunchMode::run);
  launch(write_shared, small, nullptr, 0);
  EXPECT_THROW(launch(write_shared, large, nullptr, 0), InternalError);
  set_launch_mode(LaunchMode::load);
  launch(write_shared, large, nullptr, 0);
  launch(write_shared, small, nullptr, 0);  // the larger request stays granted
  EXPECT_THROW(launch(write_shared, Grid{1, 1, 1, 32, 128 << 10}, nullptr, 0), InternalError);
  set_launch_mode(LaunchMode::run);
  launch(write_shared, large, nullptr, 0);
}

}  // namespace
}  // namespace headroom
