// Where a model's weights are if it is not trained: on the device while they fit, else the fewest layers below it.
#include "planner/weight_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/process_bytes.h"
#include "models/decoder.h"
#include "planner/inference.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kPositions = 64;

PlanRequest serving_request(int64_t memory, int64_t host, int64_t disk, const std::string& device = "cpu") {
  PlanRequest request;
  request.profile = load_profile(device == "cpu" ? "cpu-avx2" : "H100-80GB");
  request.facts = request.profile.facts;
  request.budget_bytes = memory;
  request.host_budget_bytes = host;
  request.disk_budget_bytes = disk;
  ProcessBytes process;
  process.code = int64_t{20} << 20;
  process.copies = int64_t{1} << 20;
  book_process(request, process);
  request.seq_length = kPositions;
  return request;
}

Plan generation(const PlanRequest& request, GenerationWork work = {32, 32}) {
  static constexpr int64_t kChunks[] = {32, 8, 1};
  const ModelFiles model = wide_model();
  return plan_generation(request, work, kChunks,
                         [&](int64_t chunk) { return build_generation(model.spec, kPositions, chunk, DType::f32); });
}

Plan evaluation(PlanRequest request) {
  request.forward = build_training_forward(wide_model().spec, request.global_batch, kPositions);
  return plan_evaluation(request);
}

class WeightPlacement : public testing::TestWithParam<bool> {
 protected:
  static Plan plan(const PlanRequest& request) { return GetParam() ? generation(request) : evaluation(request); }
  static int64_t least(int64_t host, int64_t disk) { return plan(serving_request(1, host, disk)).minimum_bytes; }
};

TEST_P(WeightPlacement, NothingMovesWhileItFits) {
  const int64_t budget = least(0, 0);
  const Plan plain = plan(serving_request(budget, 0, 0)), beside = plan(serving_request(budget, 0, kPlenty));
  ASSERT_TRUE(plain.feasible && beside.feasible);
  EXPECT_EQ(plan_text(beside), plan_text(plain));
  EXPECT_EQ(beside.disk.arena_bytes, 0);
  EXPECT_EQ(describe_placement(beside), "");
}

TEST_P(WeightPlacement, TheLeastBudgetIsExact) {
  const int64_t budget = least(0, kPlenty);
  EXPECT_LT(budget, least(0, 0));
  const Plan fits = plan(serving_request(budget, 0, kPlenty));
  EXPECT_TRUE(fits.feasible);
  EXPECT_EQ(fits.peak_bytes, budget);
  EXPECT_EQ(fits.disk.arena_bytes % kDiskBlockBytes, 0);
  EXPECT_GT(fits.process.copies, 0);
  EXPECT_THAT(describe_placement(fits), HasSubstr("offload-parameters disk, prefetch off: "));
  EXPECT_FALSE(plan(serving_request(budget - 1, 0, kPlenty)).feasible);
}

TEST_P(WeightPlacement, LessMemoryTakesMoreOfTheDisk) {
  const int64_t low = least(0, kPlenty), high = least(0, 0);
  int64_t on_disk = 0;
  for (int step = 0; step <= 8; ++step) {
    const Plan found = plan(serving_request(high - (high - low) * step / 8, 0, kPlenty));
    ASSERT_TRUE(found.feasible);
    EXPECT_LE(found.peak_bytes, found.budget_bytes);
    EXPECT_TRUE(!GetParam() || found.disk.arena_bytes >= on_disk) << step;
    on_disk = found.disk.arena_bytes;
  }
  EXPECT_GT(on_disk, 0);
}

TEST_P(WeightPlacement, TheRemedyIsEnough) {
  const int64_t budget = (least(0, kPlenty) + least(0, 0)) / 2;
  const Plan refused = plan(serving_request(budget, 0, 0));
  ASSERT_FALSE(refused.feasible);
  const std::string option = "--disk-memory DIR:";
  ASSERT_THAT(refused.cheapest_fix, testing::StartsWith(option));
  const int64_t size = std::stoll(refused.cheapest_fix.substr(option.size()));
  EXPECT_TRUE(plan(serving_request(budget, 0, size)).feasible);
  EXPECT_THAT(plan(serving_request(1, 0, 0)).cheapest_fix,
              testing::StartsWith("--memory " + std::to_string(least(0, kPlenty)) + " with --disk-memory DIR:"));
}

TEST_P(WeightPlacement, ATierTooSmallIsRefusedInBytes) {
  const int64_t budget = least(0, kPlenty);
  const Plan refused = plan(serving_request(budget, 0, kDiskBlockBytes));
  ASSERT_FALSE(refused.feasible);
  EXPECT_GT(refused.minimum_bytes, budget);
  const int64_t size = refused.disk.peak_bytes;
  EXPECT_TRUE(plan(serving_request(budget, 0, size)).feasible);
  EXPECT_FALSE(plan(serving_request(budget, 0, size - kDiskBlockBytes)).feasible);
}

INSTANTIATE_TEST_SUITE_P(Kinds, WeightPlacement, testing::Bool(),
                         [](const auto& param) { return param.param ? "Generation" : "Evaluation"; });

TEST(WeightPlacementPins, AreHonoured) {
  PlanRequest request = serving_request(kPlenty, kPlenty, 0);
  for (const auto& [layers, depth, text] :
       {std::tuple("4", "2", "host:4, prefetch 2"), std::tuple("on", "off", "offload-parameters host, prefetch off"),
        std::tuple("100", "1", "host:6, prefetch 1")}) {
    request.techniques = {{"offload-parameters", layers}, {"prefetch", depth}};
    EXPECT_THAT(describe_placement(generation(request)), HasSubstr(text));
  }
  request.techniques = {{"offload-parameters", "off"}};
  EXPECT_EQ(generation(request).host.arena_bytes, 0);
  request.techniques = {{"offload-parameters", "3"}};
  request.budget_bytes = 1 << 20;
  const Plan refused = generation(request);
  EXPECT_FALSE(refused.feasible);
  EXPECT_EQ(refused.budget_bytes, 1 << 20);
  request.budget_bytes = refused.minimum_bytes;
  EXPECT_TRUE(generation(request).feasible);
  request.budget_bytes -= 1;
  EXPECT_FALSE(generation(request).feasible);
  for (const auto& [name, value] : {std::pair("recompute", "on"), std::pair("offload-parameters", "0"),
                                    std::pair("offload-parameters", "1x"), std::pair("prefetch", "65")}) {
    request.techniques = {{name, value}};
    EXPECT_THROW(generation(request), Error) << name << "=" << value;
  }
  request.techniques = {{"offload-parameters", "on"}};
  request.host_budget_bytes = 0;
  EXPECT_THROW(generation(request), Error);
}

// If copies are slower than kernels, the plan's predicted time is that of the copies.
TEST(WeightPlacementTime, IsThatOfTheCopies) {
  PlanRequest request = serving_request(kPlenty, 0, kPlenty);
  request.profile.disk_read_bytes_per_second = 1e6;
  request.techniques = {{"offload-parameters", "6"}};
  const Plan slow = generation(request);
  const double seconds = static_cast<double>(slow.disk.breakdown.weights) / 1e6;
  EXPECT_NEAR(slow.step_seconds, seconds, 0.05 * seconds);
}

// If the prompt's chunks each read the weights, a larger chunk pays off.
TEST(WeightPlacementTime, CountsThePromptsChunks) {
  PlanRequest request = serving_request(kPlenty, 0, kPlenty);
  request.techniques = {{"offload-parameters", "on"}};
  EXPECT_EQ(generation(request, {32, 1}).choices.integer("loss_chunk_rows"), 32);
}

TEST(WeightPlacementBelowAGpu, TheHostIsTakenBeforeTheDisk) {
  const int64_t budget = generation(serving_request(1, kPlenty, 0, "null")).minimum_bytes;
  EXPECT_FALSE(generation(serving_request(budget, 0, 0, "null")).feasible);
  const Plan refused = generation(serving_request(budget, 0, 0, "null"));
  EXPECT_THAT(refused.cheapest_fix, testing::StartsWith("--host-memory "));
  const Plan hosted = generation(serving_request(budget, kPlenty, kPlenty, "null"));
  EXPECT_GT(hosted.host.breakdown.weights, 0);
  EXPECT_EQ(hosted.disk.arena_bytes, 0);
  EXPECT_EQ(hosted.host_process.copies, 0);
  const Plan on_disk = generation(serving_request(budget, hosted.host_process.total() + (2 << 20), kPlenty, "null"));
  ASSERT_TRUE(on_disk.feasible);
  EXPECT_EQ(on_disk.host.arena_bytes, 0);
  EXPECT_GT(on_disk.disk.breakdown.weights, 0);
}

}  // namespace
}  // namespace headroom::test
