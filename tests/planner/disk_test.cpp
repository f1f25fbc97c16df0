// Plans with a disk below the CPU or a GPU: booked memory, the remedy, the disk's speed, together with a host tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/alternatives.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

PlanRequest disk_request(int64_t memory, int64_t disk, const ModelFiles& model) {
  return tiered_request(Tier::disk, memory, disk, model);
}

TEST(DiskBudget, WholeBlocksAndCopiesAreBookedWhereSomethingLiesThere) {
  const ModelFiles model = wide_model();
  const Plan plenty = search_training_plan(disk_request(kPlenty, kPlenty, model)).plan;
  EXPECT_EQ(plenty.disk.arena_bytes, 0);
  EXPECT_EQ(plenty.process.copies, 0);
  const Plan least = search_training_plan(disk_request(plenty.minimum_bytes, kPlenty, model)).plan;
  EXPECT_GT(least.disk.arena_bytes, 0);
  EXPECT_EQ(least.disk.arena_bytes % kDiskBlockBytes, 0);
  EXPECT_GT(least.process.copies, 0);
  const Json tiers = Json::parse(plan_json(least)).at("tiers");
  EXPECT_EQ(tiers.at("disk").at("peak_bytes"), least.disk.arena_bytes);
  EXPECT_EQ(tiers.at("disk").at("budget_bytes"), kPlenty);
  EXPECT_EQ(tiers.at("host").at("peak_bytes"), least.peak_bytes);
}

TEST(DiskBudget, WithoutADiskItIsTheRemedy) {
  const ModelFiles model = wide_model();
  const Plan plain = search_training_plan(disk_request(kPlenty, 0, model)).plan;
  const Plan on_disk = search_training_plan(disk_request(kPlenty, kPlenty, model)).plan;
  ASSERT_LT(on_disk.minimum_bytes, plain.minimum_bytes);
  const PlanRequest request = disk_request(on_disk.minimum_bytes, 0, model);
  Plan refused = search_training_plan(request).plan;
  EXPECT_FALSE(refused.feasible);
  find_alternatives(request, {}, refused);
  EXPECT_THAT(refused.cheapest_fix, HasSubstr("--disk-memory DIR:"));
}

// A slower disk makes a plan that uses it slower, by its bytes.
TEST(DiskBudget, TheProfileSaysHowFastTheDiskIs) {
  const ModelFiles model = wide_model();
  PlanRequest request = disk_request(kPlenty, kPlenty, model);
  request.techniques["offload-optimizer"] = "on";
  request.techniques["prefetch"] = "1";
  request.profile.disk_read_bytes_per_second = request.profile.disk_write_bytes_per_second = 1e6;
  const Plan slow = search_training_plan(request).plan;
  const double seconds = static_cast<double>(slow.disk.breakdown.optimizer) / 1e6;
  EXPECT_GT(slow.step_seconds, seconds);
  EXPECT_LT(slow.step_seconds, 1.5 * seconds) << "reading and writing overlap";
  request.profile.disk_read_bytes_per_second = request.profile.disk_write_bytes_per_second = 1e12;
  EXPECT_LT(search_training_plan(request).plan.step_seconds, seconds / 2);
}

// If both lower tiers exist, the faster one is used while it has room.
TEST(DiskBudget, BesideAHostTheDiskIsTheLastResort) {
  const ModelFiles model = wide_model();
  PlanRequest request = disk_request(kPlenty, kPlenty, model);
  request.host_budget_bytes = kPlenty;
  request.techniques["offload-optimizer"] = "on";
  const Plan hosted = search_training_plan(request).plan;
  EXPECT_GT(hosted.host.arena_bytes, 0);
  EXPECT_EQ(hosted.disk.arena_bytes, 0);
  request.host_budget_bytes = int64_t{1} << 20;
  const Plan on_disk = search_training_plan(request).plan;
  ASSERT_TRUE(on_disk.feasible);
  EXPECT_EQ(on_disk.host.arena_bytes, 0);
  EXPECT_GT(on_disk.disk.arena_bytes, 0);
}

// A GPU that need not exist: the device "null" with its profile.
PlanRequest gpu_request(int64_t memory, int64_t host, int64_t disk, const ModelFiles& model) {
  TrainOptions options = fixed_options(memory);
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.data.global_batch_size = 2;
  options.data.micro_batch_size = 1;
  options.machine.host_memory = host;
  options.machine.disk_directory = ".";
  options.machine.disk_memory = disk;
  PlanRequest request = fixed_request(options, model);
  request.host_process.gpu = 0;  // otherwise it hides what else the host holds, such as preparing the data
  request.prepare = {};
  return request;
}

TEST(DiskBelowAGpu, MakesAPlanFitThatWouldNot) {
  const ModelFiles model = wide_model();
  const Plan plenty = search_training_plan(gpu_request(kPlenty, 0, 0, model)).plan;
  const Plan with_disk = search_training_plan(gpu_request(kPlenty, 0, kPlenty, model)).plan;
  EXPECT_EQ(with_disk.disk.arena_bytes, 0) << "with room for everything nothing is copied";
  EXPECT_EQ(with_disk.host_process.copies, 0);
  ASSERT_LT(with_disk.minimum_bytes, plenty.minimum_bytes);
  const PlanRequest without = gpu_request(with_disk.minimum_bytes, 0, 0, model);
  EXPECT_FALSE(search_training_plan(without).plan.feasible);
  const Plan least = search_training_plan(gpu_request(with_disk.minimum_bytes, 0, kPlenty, model)).plan;
  ASSERT_TRUE(least.feasible);
  EXPECT_GT(least.disk.arena_bytes, 0);
  EXPECT_EQ(least.host.arena_bytes, 0);
  EXPECT_EQ(least.process.copies, 0) << "the GPU's memory holds none of the buffers";
  EXPECT_EQ(least.host_process.copies,
            disk_process_bytes(least.facts) + 6 * 128 * 1024);  // buffers, and tables of six layers
  EXPECT_EQ(least.host.peak_bytes, least.host_process.total());
  EXPECT_EQ(Json::parse(plan_json(least)).at("host_process").at("copies"), least.host_process.copies);
}

TEST(DiskBelowAGpu, IsTheRemedyWhereTheHostIsTooSmall) {
  const ModelFiles model = wide_model();
  const Plan with_disk = search_training_plan(gpu_request(kPlenty, 0, kPlenty, model)).plan;
  const PlanRequest request = gpu_request(with_disk.minimum_bytes, int64_t{40} << 20, 0, model);
  SearchResult refused = search_training_plan(request);
  ASSERT_FALSE(refused.plan.feasible);
  find_alternatives(request, {}, refused.plan);
  EXPECT_THAT(refused.plan.cheapest_fix, HasSubstr("--disk-memory DIR:"));
  EXPECT_EQ(refused.plan.host_process.copies, 0);
}

// The host's budget includes the host memory of the GPU's driver and libraries.
TEST(DiskBelowAGpu, ItsDriverCountsAgainstTheHost) {
  const ModelFiles model = wide_model();
  TrainOptions options = fixed_options(kPlenty);
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.machine.host_memory = kPlenty;
  PlanRequest request = fixed_request(options, model);
  EXPECT_EQ(request.host_process.gpu,
            window_bytes(request.facts) + graph_bytes(request.facts) + request.profile.host_context_bytes);
  EXPECT_EQ(request.process.gpu, 0);
  const Plan plan = search_training_plan(request).plan;
  EXPECT_EQ(Json::parse(plan_json(plan)).at("host_process").at("gpu"), request.host_process.gpu);
  EXPECT_GT(plan.host.peak_bytes, request.host_process.gpu);
  request.host_budget_bytes = request.host_process.gpu;
  EXPECT_FALSE(search_training_plan(request).plan.feasible);
  options.machine.device = "cpu";
  options.machine.profile.clear();
  options.machine.host_memory = 0;
  EXPECT_EQ(fixed_request(options, model).process.gpu, 0);
}

// The host's budget includes the buffers of copies to disk.
TEST(DiskBelowAGpu, ItsBuffersCountAgainstTheHost) {
  const ModelFiles model = wide_model();
  PlanRequest request = gpu_request(kPlenty, kPlenty, kPlenty, model);
  request.techniques["offload-optimizer"] = "on";
  const Plan hosted = search_training_plan(request).plan;
  EXPECT_GT(hosted.host.arena_bytes, 0);
  EXPECT_EQ(hosted.disk.arena_bytes, 0) << "the host is faster";
  EXPECT_EQ(hosted.host_process.copies, 0);
  request.host_budget_bytes = hosted.host.arena_bytes;
  const Plan on_disk = search_training_plan(request).plan;
  ASSERT_TRUE(on_disk.feasible);
  EXPECT_EQ(on_disk.host.arena_bytes, 0);
  EXPECT_GT(on_disk.disk.arena_bytes, 0);
  EXPECT_LE(on_disk.host.peak_bytes, request.host_budget_bytes);
  request.host_budget_bytes = on_disk.host.peak_bytes - 1;
  const SearchResult refused = search_training_plan(request);
  EXPECT_FALSE(refused.plan.feasible);
  EXPECT_EQ(refused.plan.host.peak_bytes, on_disk.host.peak_bytes);
}

}  // namespace
}  // namespace headroom::test
