// Grids of loops over elements.
#include <gtest/gtest.h>

#include "ops/cuda/launch.h"

namespace headroom::cuda {
namespace {

TEST(CudaGrid, LargeOnesAreWholeWavesOfResidentBlocks) {
  for (int multiprocessors : {20, 82, 108, 132})
    for (int64_t resident : {2, 3, 4, 6, 8})
      EXPECT_EQ(grid_over(int64_t{1} << 40, multiprocessors).x % (resident * multiprocessors), 0);
}

TEST(CudaGrid, SmallOnesHaveNoMoreBlocksThanTheirItemsNeed) {
  EXPECT_EQ(grid_over(0, 132).x, 1);
  EXPECT_EQ(grid_over(257, 132).x, 2);
  EXPECT_EQ(grid_over(257, 132, 128).x, 3);
}

}  // namespace
}  // namespace headroom::cuda
