// The shim itself: barriers, collectives, and the faults it must find.
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "ops/cuda/launch.cuh"
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

class CudaShim : public testing::Test {
 protected:
  void TearDown() override { cuda_shim::set_order(cuda_shim::Order::forward); }
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
  launch(half_waits, Grid{1, 1, 1, 32, 0}, nullptr);  // and works on afterwards
}

TEST_F(CudaShim, LoadModeRunsNothing) {
  std::vector<int> x(64, 5), y(64, 7);
  set_launch_mode(LaunchMode::load);
  launch(reverse_in_shared, Grid{1, 1, 1, 64, 256}, nullptr, x.data(), y.data(), true);
  set_launch_mode(LaunchMode::run);
  EXPECT_EQ(y[0], 7);
}

}  // namespace
}  // namespace headroom
