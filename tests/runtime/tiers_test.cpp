// Plans with two tiers: values of the host in a separate arena, copies between the tiers on separate streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/threads.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "ops/registry.h"
#include "plan/storage_spans.h"
#include "planner/emit.h"
#include "race_checker.h"
#include "runtime/executor.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

// sum += x, then every trip: sum += state, state += x, with the state on the host.
constexpr const char* kSums = R"(graph "sums" {
  persistent %0: f32[100] data "x"
  persistent %1: f32[100]@host optimizer "state"
  persistent %2: f32[100]@host optimizer "idle"
  program step {
    %3: f32[100] workspace = allocate() {dims="100", dtype="f32"} @update
    %4: f32[100] workspace = loop(%3) {trips="rounds"} @update (%5: f32[100] workspace) {
      %6: f32[100] optimizer, %7: i32[1] = copy_start(%1) {to="device"} @transfer
      %8: f32[100] = add(%0, %0)
      %9: f32[100] optimizer = wait(%6, %7) @transfer
      %10: f32[100] workspace = accumulate(%9, %5) {accumulate="carried"} @update
      %11: f32[100] optimizer = add(%9, %8) @update
      %12: f32[100]@host optimizer, %13: i32[1] = copy_start(%11, %1) {to="host"} @transfer
      %14: f32[100] = add(%8, %8)
      %15: f32[100]@host optimizer = wait(%12, %13) @transfer
      yield %10
    }
    yield %4
  }
}
)";

// The plan of a graph's text, without a search.
Plan plan_of(const char* text, int64_t alignment = 64) {
  const Graph graph = parse_graph(text, "sums", find_op);
  verify_or_throw(graph, "the test");
  PlanRequest request;
  request.facts.alignment = alignment;
  request.profile = load_profile("cpu-avx2");
  Plan plan;
  plan.model = "sums";
  plan.facts = request.facts;
  const Liveness liveness = analyze_liveness(graph, graph.bounds(), request.facts);
  emit_programs(graph, graph.bounds(), liveness, assign_arenas(liveness), request, plan);
  return plan;
}

TEST(Tiers, EachHasAnArenaOfItsOwn) {
  const Plan plan = plan_of(kSums);
  // x, the carried sum, x + x, the window, its result, and a token; never the two states of the host.
  EXPECT_EQ(plan.host.arena_bytes, 2 * 448);
  EXPECT_EQ(plan.host.lower_bound_bytes, plan.host.arena_bytes);
  EXPECT_EQ(plan.host.breakdown.optimizer, 800);
  EXPECT_EQ(plan.host.breakdown.alignment, 96);
  EXPECT_EQ(plan.breakdown.data, 400);
  EXPECT_EQ(plan.arena_bytes, plan.lower_bound_bytes);
  EXPECT_EQ(plan.program("step")->peaks.host, 448 + 400);
  const PersistentTensor* idle = plan.tensor("idle");
  EXPECT_EQ(idle->place.tier, Tier::host);
  EXPECT_EQ(idle->place.offset, 448);
  EXPECT_EQ(plan.tensor("x")->place.tier, Tier::device);
  const std::string text = plan_text(plan);
  EXPECT_THAT(text, HasSubstr(" process 0 host 896\n"));
  EXPECT_THAT(text, HasSubstr("tensor \"state\" optimizer f32[100]@host:0\n"));
  EXPECT_THAT(text, HasSubstr("f32[100]@host:0, i32[1]@"));
}

TEST(Tiers, SpansAreThoseOfTheDevice) {
  const Plan plan = plan_of(kSums);
  int64_t persistent = 0;
  for (const StorageSpan& span : storage_spans(plan, *plan.program("step"))) {
    persistent += span.persistent;
    EXPECT_LE(span.offset + span.bytes, plan.arena_bytes) << span.name;
  }
  EXPECT_EQ(persistent, 1);
}

TEST(Tiers, SourceAndDestinationLiveUntilTheWait) {
  const Graph graph = parse_graph(kSums, "sums", find_op);
  const Liveness liveness = analyze_liveness(graph, graph.bounds(), {});
  for (const StorageLife& life : liveness.storages)
    if (life.value != kNone && !life.persistent && life.tier == Tier::device && life.bytes == 400 &&
        graph.value(life.value).role == Role::optimizer) {
      EXPECT_GE(life.upper - life.lower, 4) << "value " << life.value;  // the start, what runs meanwhile, the wait
    }
}

struct Sums {
  std::vector<float> sum, state;
};

// Runs `times` steps of `rounds` on a device whose arenas the host can access.
Sums run(const Plan& plan, Device& device, int64_t rounds, int times) {
  set_threads(1);
  Executor executor(plan, device, nullptr);
  const TensorView x = executor.tensor("x"), state = executor.tensor("state");
  for (int64_t i = 0; i < 100; ++i) x.as<float>()[i] = static_cast<float>(i), state.as<float>()[i] = 1.0f;
  const Trips trips[] = {{"rounds", rounds}};
  for (int i = 0; i < times; ++i) executor.run("step", trips);
  EXPECT_EQ(executor.arena_high_water(), plan.arena_bytes);
  EXPECT_EQ(executor.arena_high_water(Tier::host), 448);  // the idle state was not accessed
  const float* sum = executor.result("step", 0).as<float>();
  return {{sum, sum + 100}, {state.as<float>(), state.as<float>() + 100}};
}

TEST(Tiers, CopiesCarryTheStateThroughEveryTrip) {
  const Plan plan = plan_of(kSums);
  RaceChecker device(make_cpu_device(plan.facts));
  const Sums found = run(plan, device, 3, 2);
  for (size_t i = 0; i < 100; ++i) {
    const float x = static_cast<float>(i);
    EXPECT_EQ(found.state[i], 1 + 2 * 6 * x);
    EXPECT_EQ(found.sum[i], 3 * (1 + 6 * x) + 2 * (0 + 1 + 2) * x);  // of the second step
  }
  EXPECT_EQ(device.copies(), 2 * 3 * 2);
  EXPECT_THAT(device.races(), testing::IsEmpty());
}

TEST(Tiers, TheNullDeviceChecksBothArenas) {
  Plan plan = plan_of(kSums);
  const Trips trips[] = {{"rounds", 2}};
  const std::unique_ptr<Device> sound = make_null_device(plan.facts);
  Executor(plan, *sound, nullptr).run("step", trips);
  plan.host.arena_bytes = 256;  // the state ends beyond it
  const std::unique_ptr<Device> small = make_null_device(plan.facts);
  EXPECT_THROW(Executor(plan, *small, nullptr).run("step", trips), InternalError);
}

// States of 10^12 weights take more.
TEST(Tiers, ArenasOfTheNullDeviceMayHaveAnySize) {
  const std::unique_ptr<Device> device = make_null_device({});
  constexpr int64_t kBytes = int64_t{1} << 58;
  std::vector<std::byte*> arenas;
  for (const Tier tier : kArenaTiers) arenas.push_back(device->reserve_arena(tier, kBytes));
  for (std::byte* to : arenas)
    for (std::byte* from : arenas) EXPECT_NO_THROW(device->copy(to + kBytes - 512, from + kBytes - 512, 512, 0));
  EXPECT_THROW(device->copy(arenas[0] + kBytes - 256, arenas[1], 512, 0), InternalError);
}

// The plan without one instruction.
Plan without(Plan plan, size_t index) {
  std::vector<Instruction>& instructions = plan.programs[0].instructions;
  instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(index));
  return plan;
}

TEST(RaceCheckerFinds, EveryWaitThatIsMissing) {
  const Plan plan = plan_of(kSums);
  int missing = 0;
  for (size_t i = 0; i < plan.programs[0].instructions.size(); ++i) {
    if (!plan.programs[0].instructions[i].op || op_name(*plan.programs[0].instructions[i].op) != "wait") continue;
    const Plan broken = without(plan, i);
    RaceChecker device(make_cpu_device(plan.facts));
    run(broken, device, 2, 2);
    EXPECT_FALSE(device.races().empty()) << "without the wait at " << i;
    ++missing;
  }
  EXPECT_EQ(missing, 2);
}

TEST(RaceCheckerFinds, CopiesThatDoNotWaitForKernels) {
  const Plan plan = plan_of(kSums);
  RaceChecker device(make_cpu_device(plan.facts), true);
  run(plan, device, 2, 1);
  EXPECT_FALSE(device.races().empty());
}

TEST(Tiers, ValuesOfTheHostAreReachedByCopiesAlone) {
  const std::string text = R"(graph "g" {
  persistent %0: f32[4] data "x"
  persistent %1: f32[4]@host optimizer "state"
  program step {
    %2: f32[4] = add(%0, %1)
    yield %2
  }
})";
  const std::vector<Violation> found = verify(parse_graph(text, "g", find_op));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].rule, "host-reached-by-copies");
}

}  // namespace
}  // namespace headroom::test
