#include "memory/exact.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "memory/buffers_csv.h"
#include "memory/checker.h"
#include "memory/lower_bound.h"
#include "memory/offset_assignment.h"
#include "random_buffers.h"

namespace headroom {
namespace {

// The smallest peak, by trying all orders: in some optimal assignment, in order of offset, each buffer lies directly on
// top of earlier ones.
int64_t brute_force_peak(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> end(buffers.size());
  do {
    int64_t peak = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Buffer& buffer = buffers[order[k]];
      int64_t offset = 0;
      for (size_t j = 0; j < k; ++j) {
        const Buffer& below = buffers[order[j]];
        if (below.lower < buffer.upper && buffer.lower < below.upper) offset = std::max(offset, end[order[j]]);
      }
      end[order[k]] = offset + buffer.size;
      peak = std::max(peak, end[order[k]]);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

// Whether the buffers fit, by trying each remaining buffer next, on top of those that it conflicts with. Tries only
// orders of rising (offset, index), starting at (floor, last), so that all remaining buffers end up above `floor`. It
// also gives up at a slot where that is impossible.
bool fits_by_trying(const std::vector<Buffer>& buffers, std::vector<int64_t>& offsets, int64_t capacity,
                    int64_t floor = 0, size_t last = 0) {
  for (const Buffer& begin : buffers) {
    int64_t needed = floor;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const bool live = buffers[i].lower <= begin.lower && begin.lower < buffers[i].upper;
      if (offsets[i] < 0 && live) needed += buffers[i].size;
    }
    if (needed > capacity) return false;
  }
  bool all_placed = true;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (offsets[i] >= 0) continue;
    all_placed = false;
    int64_t offset = 0;
    for (size_t j = 0; j < buffers.size(); ++j) {
      const bool together = buffers[j].lower < buffers[i].upper && buffers[i].lower < buffers[j].upper;
      if (offsets[j] >= 0 && together) offset = std::max(offset, offsets[j] + buffers[j].size);
    }
    if (offset + buffers[i].size > capacity) return false;
    if (offset < floor || (offset == floor && i < last)) continue;
    offsets[i] = offset;
    if (fits_by_trying(buffers, offsets, capacity, offset, i)) return true;
    offsets[i] = -1;
  }
  return all_placed;
}

TEST(Exact, MatchesBruteForce) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const int count = 3 + round % 5;
    const std::vector<Buffer> buffers = testing::random_buffers(random, count, 3 + round % 7, 1 + round % 9);
    const int64_t optimum = brute_force_peak(buffers);
    const ExactResult exact = assign_optimally(buffers, 1, 1'000'000);
    ASSERT_EQ(exact.status, ExactStatus::solved);
    EXPECT_EQ(exact.assignment.peak, optimum) << "round " << round;
    EXPECT_EQ(find_violation(buffers, exact.assignment, 1), std::nullopt);
    EXPECT_EQ(pack_within(buffers, 1, optimum, 1'000'000).status, ExactStatus::solved);
    if (optimum > 0) {
      EXPECT_EQ(pack_within(buffers, 1, optimum - 1, 1'000'000).status, ExactStatus::infeasible);
    }
  }
}

// If the optimum is above the lower bound, infeasibility must be found by search, which shows wrong pruning.
TEST(Exact, DecidesTightProblemsAsTryingDoes) {
  std::mt19937_64 random(5);
  int infeasible = 0;
  int feasible = 0;
  for (int round = 0; round < 400; ++round) {
    constexpr int64_t kHeight = 14;
    const std::vector<Buffer> buffers = testing::tight_buffers(random, 6 + round % 3, kHeight);
    if (buffers.size() > 18) continue;
    std::vector<int64_t> offsets(buffers.size(), -1);
    const bool fits = fits_by_trying(buffers, offsets, kHeight);
    const ExactResult exact = pack_within(buffers, 1, kHeight, 1'000'000);
    ASSERT_EQ(exact.status, fits ? ExactStatus::solved : ExactStatus::infeasible) << "round " << round;
    ++(fits ? feasible : infeasible);
    if (fits) continue;
    const ExactResult optimal = assign_optimally(buffers, 1, 1'000'000);
    ASSERT_EQ(optimal.status, ExactStatus::solved);
    EXPECT_GT(optimal.assignment.peak, kHeight);
    EXPECT_EQ(find_violation(buffers, optimal.assignment, 1), std::nullopt);
    offsets.assign(buffers.size(), -1);
    EXPECT_FALSE(fits_by_trying(buffers, offsets, optimal.assignment.peak - 1));
  }
  EXPECT_GT(infeasible, 5);
  EXPECT_GT(feasible, 20);
}

TEST(Exact, NeverCallsADissectionInfeasible) {
  std::mt19937_64 random(9);
  int solved = 0;
  for (int round = 0; round < 300; ++round) {
    const std::vector<Buffer> buffers = testing::dissected_buffers(random, 10 + round % 20, 64, 10 + round % 50);
    const ExactResult exact = pack_within(buffers, 1, 64, 20'000);
    ASSERT_NE(exact.status, ExactStatus::infeasible) << "round " << round;
    if (exact.status != ExactStatus::solved) continue;
    ++solved;
    EXPECT_EQ(find_violation(buffers, exact.assignment, 1, 64), std::nullopt);
  }
  EXPECT_GT(solved, 250);
}

TEST(Exact, RoundsSizesUpToTheAlignment) {
  const std::vector<Buffer> buffers = {{0, 0, 2, 1, -1}, {1, 1, 3, 65, -1}, {2, 0, 3, 0, -1}};
  const ExactResult exact = assign_optimally(buffers, 64, 1000);
  EXPECT_EQ(exact.assignment.peak, 192);
  EXPECT_EQ(find_violation(buffers, exact.assignment, 64), std::nullopt);
}

TEST(Exact, KeepsItsNodeLimit) {
  std::mt19937_64 random(3);
  const std::vector<Buffer> buffers = testing::random_buffers(random, 200, 60, 1000);
  const ExactResult result = pack_within(buffers, 1, lower_bound(buffers, 1), 500);
  EXPECT_LE(result.nodes, 501);
}

TEST(Exact, RefusesPins) {
  const std::vector<Buffer> buffers = {{0, 0, 1, 64, 0}};
  EXPECT_THROW(pack_within(buffers, 64, 64, 10), Error);
  EXPECT_THROW(assign_optimally(buffers, 64, 10), Error);
}

TEST(Exact, SolvesHardProblems) {
  const std::filesystem::path folder = test::data_file("packing");
  for (const char* name : {"A", "C", "E", "G", "I", "K"}) {
    const std::vector<Buffer> buffers = read_buffers_csv(folder / fmt::format("{}.1048576.csv", name));
    AssignmentOptions options;
    options.capacity = 1048576;
    options.exact_nodes = 1'000'000;
    const OffsetAssignment assignment = assign_offsets(buffers, options);
    EXPECT_EQ(find_violation(buffers, assignment, options.alignment, options.capacity), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace headroom
