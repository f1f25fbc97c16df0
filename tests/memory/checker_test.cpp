#include "memory/checker.h"

#include <gtest/gtest.h>

#include <limits>

#include "memory/offset_assignment.h"
#include "random_buffers.h"

namespace headroom {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

std::vector<Buffer> three_buffers() { return {{0, 0, 4, 100, -1}, {1, 2, 6, 64, 128}, {2, 4, 8, 128, -1}}; }

TEST(Checker, AcceptsASoundAssignment) {
  EXPECT_EQ(find_violation(three_buffers(), {{0, 128, 0}, 192}, 64, 192), std::nullopt);
  EXPECT_EQ(find_violation({}, {}, 64, 0), std::nullopt);
}

TEST(Checker, NamesWhatIsWrong) {
  const auto complaint = [](const OffsetAssignment& assignment, int64_t capacity = 0) {
    return find_violation(three_buffers(), assignment, 64, capacity).value_or("accepted");
  };
  EXPECT_EQ(complaint({{64, 128, 0}, 192}), "buffers 0 (offset 64) and 1 (offset 128) overlap in slot 2");
  EXPECT_EQ(complaint({{0, 128, 64}, 192}), "buffers 1 (offset 128) and 2 (offset 64) overlap in slot 4");
  EXPECT_EQ(complaint({{32, 128, 0}, 192}), "buffer 0 has the offset 32, not a multiple of 64");
  EXPECT_EQ(complaint({{-64, 128, 0}, 192}), "buffer 0 has the negative offset -64");
  EXPECT_EQ(complaint({{0, 192, 0}, 256}), "buffer 1 is pinned to 128 but placed at 192");
  EXPECT_EQ(complaint({{0, 128, 0}, 256}), "the peak is stated as 256 but the highest end is 192");
  EXPECT_EQ(complaint({{0, 128, 0}, 192}, 191), "the peak 192 is above the capacity 191");
  EXPECT_EQ(complaint({{0, 128}, 192}), "2 offsets for 3 buffers");
}

TEST(Checker, SameOffsetTwiceIsAnOverlap) {
  const std::vector<Buffer> buffers = {{0, 0, 2, 64, -1}, {1, 1, 3, 64, -1}};
  EXPECT_TRUE(find_violation(buffers, {{0, 0}, 64}, 64));
  const std::vector<Buffer> successive = {{0, 0, 2, 64, -1}, {1, 2, 3, 64, -1}};
  EXPECT_FALSE(find_violation(successive, {{0, 0}, 64}, 64));
}

TEST(Checker, EmptyBuffersConflictWithNone) {
  const std::vector<Buffer> buffers = {{0, 0, 2, 128, -1}, {1, 1, 3, 0, -1}};
  EXPECT_FALSE(find_violation(buffers, {{0, 64}, 128}, 64));
}

TEST(Checker, SurvivesHostileNumbers) {
  const std::vector<Buffer> huge = {{0, std::numeric_limits<int64_t>::min(), kMost, kMost, -1}};
  EXPECT_TRUE(find_violation(huge, {{64}, kMost}, 64));
  EXPECT_TRUE(find_violation(huge, {{0}, kMost}, 64));
  EXPECT_FALSE(find_violation(huge, {{0}, kMost}, 1));
  EXPECT_TRUE(find_violation(huge, {{0}, kMost}, 0));
  const std::vector<Buffer> malformed = {{0, 3, 3, 1, -1}};
  EXPECT_TRUE(find_violation(malformed, {{0}, 1}, 1));
  const std::vector<Buffer> negative = {{0, 3, 4, -5, -1}};
  EXPECT_TRUE(find_violation(negative, {{0}, 0}, 1));
}

// Moving one buffer of an assignment onto another that is alive with it is always detected.
TEST(Checker, CatchesEveryMutation) {
  std::mt19937_64 random(7);
  int mutations = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<Buffer> buffers = testing::random_buffers(random, 20, 12, 9, 64);
    const OffsetAssignment assignment = assign_offsets(buffers);
    ASSERT_EQ(find_violation(buffers, assignment, 64), std::nullopt);
    for (size_t a = 0; a < buffers.size(); ++a) {
      for (size_t b = 0; b < buffers.size(); ++b) {
        const bool together = buffers[a].lower < buffers[b].upper && buffers[b].lower < buffers[a].upper;
        if (a == b || !together || buffers[a].size == 0 || buffers[b].size == 0) continue;
        OffsetAssignment mutated = assignment;
        mutated.offsets[a] = assignment.offsets[b] + buffers[b].size - 64;
        mutated.peak = 0;
        for (size_t i = 0; i < buffers.size(); ++i) {
          mutated.peak = std::max(mutated.peak, mutated.offsets[i] + buffers[i].size);
        }
        EXPECT_TRUE(find_violation(buffers, mutated, 64));
        ++mutations;
      }
    }
  }
  EXPECT_GT(mutations, 1000);
}

}  // namespace
}  // namespace headroom
