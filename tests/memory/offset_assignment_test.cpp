#include "memory/offset_assignment.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "memory/checker.h"
#include "memory/lower_bound.h"
#include "random_buffers.h"
#include "transformer_timeline.h"

namespace headroom {
namespace {

using testing::KeptActivations;
using testing::TransformerTimeline;
using testing::WeightGradients;

TEST(OffsetAssignments, NothingAndEmptyBuffersTakeNoSpace) {
  EXPECT_EQ(assign_offsets({}).peak, 0);
  const std::vector<Buffer> buffers = {{0, 0, 3, 0, -1}, {1, 1, 2, 0, -1}};
  const OffsetAssignment assignment = assign_offsets(buffers);
  EXPECT_EQ(assignment.peak, 0);
  EXPECT_EQ(assignment.offsets, (std::vector<int64_t>{0, 0}));
}

TEST(OffsetAssignments, PersistentBuffersLieAtTheBottomInInputOrder) {
  const std::vector<Buffer> buffers = {
      {0, 4, 6, 1000, -1}, {1, 0, 10, 10, -1}, {2, 0, 3, 64, -1}, {3, 0, 10, 65, -1}, {4, 2, 5, 64, -1}};
  const OffsetAssignment assignment = assign_offsets(buffers);
  EXPECT_EQ(assignment.offsets[1], 0);
  EXPECT_EQ(assignment.offsets[3], 64);
  EXPECT_EQ(assignment.peak, lower_bound(buffers, 64));
  EXPECT_EQ(find_violation(buffers, assignment, 64), std::nullopt);
}

TEST(OffsetAssignments, ReachesTheLowerBoundOnTransformerTraining) {
  for (const auto kept :
       {KeptActivations::all, KeptActivations::cheap_dropped, KeptActivations::input_only, KeptActivations::mixed}) {
    for (const auto gradients : {WeightGradients::fused, WeightGradients::kept, WeightGradients::accumulated}) {
      for (const int layers : {1, 2, 6, 12, 24, 33, 80}) {
        TransformerTimeline options;
        options.layers = layers;
        options.kept = kept;
        options.gradients = gradients;
        if (layers % 3 == 0) {
          options.hidden = 2048;
          options.ffn = 5504;
          options.tokens = 4096;
        }
        const std::vector<Buffer> buffers = make_transformer_timeline(options);
        const OffsetAssignment assignment = assign_offsets(buffers);
        ASSERT_EQ(find_violation(buffers, assignment, 64), std::nullopt);
        EXPECT_LE(static_cast<double>(assignment.peak), 1.001 * static_cast<double>(lower_bound(buffers, 64)))
            << layers << " layers, kept " << static_cast<int>(kept) << ", gradients " << static_cast<int>(gradients);
      }
    }
  }
}

TEST(OffsetAssignments, TakesTensOfThousandsOfBuffers) {
  TransformerTimeline options;
  options.layers = 600;
  options.kept = KeptActivations::mixed;
  const std::vector<Buffer> buffers = make_transformer_timeline(options);
  ASSERT_GT(buffers.size(), 60'000U);
  const OffsetAssignment assignment = assign_offsets(buffers);
  EXPECT_EQ(find_violation(buffers, assignment, 64), std::nullopt);
  EXPECT_LE(static_cast<double>(assignment.peak), 1.001 * static_cast<double>(lower_bound(buffers, 64)));
}

TEST(OffsetAssignments, IsSoundOnRandomProblems) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 150; ++round) {
    const std::vector<Buffer> buffers = testing::random_buffers(random, 1 + round, 1 + round % 40, 1 << (round % 20));
    AssignmentOptions options;
    options.alignment = 1 + round % 70;
    options.effort_iterations = round % 4 * 5;
    options.exact_nodes = round % 3 * 500;
    const OffsetAssignment assignment = assign_offsets(buffers, options);
    EXPECT_EQ(find_violation(buffers, assignment, options.alignment), std::nullopt);
    EXPECT_GE(assignment.peak, lower_bound(buffers, options.alignment));
    EXPECT_EQ(assign_offsets(buffers, options).offsets, assignment.offsets);
  }
}

TEST(OffsetAssignments, EffortNeverMakesThePeakWorse) {
  std::mt19937_64 random(2);
  int better = 0;
  for (int round = 0; round < 20; ++round) {
    const std::vector<Buffer> buffers = testing::random_buffers(random, 120, 40, 5000);
    AssignmentOptions options;
    options.alignment = 1;
    options.effort_iterations = 0;
    options.exact_nodes = 0;
    const int64_t greedy = assign_offsets(buffers, options).peak;
    options.effort_iterations = 40;
    const int64_t squeaky = assign_offsets(buffers, options).peak;
    options.exact_nodes = 20'000;
    const int64_t exact = assign_offsets(buffers, options).peak;
    EXPECT_LE(squeaky, greedy);
    EXPECT_LE(exact, squeaky);
    better += exact < greedy;
  }
  EXPECT_GT(better, 5);
}

TEST(OffsetAssignments, PinsStayWhereTheyAre) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<Buffer> buffers = testing::random_buffers(random, 40, 15, 20, 64);
    for (size_t i = 0; i < 6; ++i) buffers[i * 5].pinned_offset = static_cast<int64_t>(i) * 20 * 64;
    const OffsetAssignment assignment = assign_offsets(buffers);
    EXPECT_EQ(find_violation(buffers, assignment, 64), std::nullopt);
  }
}

TEST(OffsetAssignments, RefusesPinsOnTopOfEachOther) {
  const std::vector<Buffer> buffers = {{0, 0, 4, 128, 0}, {17, 3, 5, 64, 64}};
  try {
    assign_offsets(buffers);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("buffer 17"), std::string::npos);
  }
  const std::vector<Buffer> successive = {{0, 0, 3, 128, 0}, {17, 3, 5, 64, 64}};
  EXPECT_EQ(assign_offsets(successive).peak, 128);
}

TEST(OffsetAssignments, DecisionModeStopsAtTheCapacity) {
  std::mt19937_64 random(4);
  const std::vector<Buffer> buffers = testing::random_buffers(random, 300, 50, 1000, 64);
  const int64_t bound = lower_bound(buffers, 64);
  AssignmentOptions options;
  options.capacity = 2 * bound;
  EXPECT_LE(assign_offsets(buffers, options).peak, options.capacity);
  options.capacity = bound - 64;  // impossible: the answer comes without search and is valid
  const OffsetAssignment assignment = assign_offsets(buffers, options);
  EXPECT_GT(assignment.peak, options.capacity);
  EXPECT_EQ(find_violation(buffers, assignment, 64), std::nullopt);
}

TEST(OffsetAssignments, TakesTheLargestSizesAndRefusesLargerOnes) {
  const int64_t quarter = int64_t{1} << 60;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back({i, i, i + 2, quarter, -1});
  const OffsetAssignment assignment = assign_offsets(buffers);
  EXPECT_EQ(assignment.peak, 2 * quarter);
  EXPECT_EQ(find_violation(buffers, assignment, 64), std::nullopt);
  buffers.push_back({4, 9, 10, 1, -1});
  EXPECT_THROW(assign_offsets(buffers), Error);
}

}  // namespace
}  // namespace headroom
