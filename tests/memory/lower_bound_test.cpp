#include "memory/lower_bound.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/error.h"

namespace headroom {
namespace {

TEST(LowerBound, IsTheLargestSumOfAlignedSizes) {
  const std::vector<Buffer> buffers = {{0, 10, 20, 100, -1}, {1, 15, 30, 1, -1}, {2, 20, 25, 64, -1}};
  int64_t slot = -1;
  EXPECT_EQ(lower_bound(buffers, 64, &slot), 192);
  EXPECT_EQ(slot, 15);
  EXPECT_EQ(lower_bound(buffers, 1, &slot), 101);
  EXPECT_EQ(slot, 15);
}

TEST(LowerBound, EndsAreExclusive) {
  const std::vector<Buffer> buffers = {{0, 0, 5, 64, -1}, {1, 5, 9, 128, -1}};
  int64_t slot = -1;
  EXPECT_EQ(lower_bound(buffers, 64, &slot), 128);
  EXPECT_EQ(slot, 5);
}

TEST(LowerBound, NothingNeedsNothing) {
  int64_t slot = -1;
  EXPECT_EQ(lower_bound({}, 64, &slot), 0);
  EXPECT_EQ(slot, 0);
  const std::vector<Buffer> empty = {{0, 3, 4, 0, -1}};
  EXPECT_EQ(lower_bound(empty, 64), 0);
}

TEST(LowerBound, TakesSlotsOverTheWholeRange) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::vector<Buffer> buffers = {{0, kLeast, 0, 10, -1}, {1, -1, kMost, 20, -1}};
  int64_t slot = 0;
  EXPECT_EQ(lower_bound(buffers, 1, &slot), 30);
  EXPECT_EQ(slot, -1);
}

TEST(LowerBound, RefusesSumsBeyondTheLimit) {
  const int64_t huge = (int64_t{1} << 62) - 64;
  const std::vector<Buffer> one = {{7, 0, 1, huge, -1}};
  EXPECT_EQ(lower_bound(one, 64), huge);
  const std::vector<Buffer> two = {{7, 0, 1, huge, -1}, {8, 5, 6, huge, -1}};
  EXPECT_THROW(lower_bound(two, 64), Error);
  const std::vector<Buffer> largest = {{7, 0, 1, std::numeric_limits<int64_t>::max(), -1}};
  EXPECT_THROW(lower_bound(largest, 64), Error);
  const std::vector<Buffer> pinned = {{7, 0, 1, huge, -1}, {8, 5, 6, 64, huge}};
  EXPECT_THROW(lower_bound(pinned, 64), Error);
}

TEST(LowerBound, RefusesMalformedBuffers) {
  for (const Buffer& bad : {Buffer{42, 5, 5, 1, -1}, Buffer{42, 6, 5, 1, -1}, Buffer{42, 0, 1, -1, -1},
                            Buffer{42, 0, 1, 1, -2}, Buffer{42, 0, 1, 1, 63}}) {
    try {
      lower_bound(std::vector<Buffer>{bad}, 64);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("buffer 42"), std::string::npos) << error.what();
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_FALSE(error.remedy().empty());
    }
  }
  EXPECT_THROW(lower_bound({}, 0), Error);
  EXPECT_THROW(lower_bound({}, -64), Error);
}

}  // namespace
}  // namespace headroom
