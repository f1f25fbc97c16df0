// The shard pass needs no second planner: its graphs are verified, given offsets, checked and run on the null device.
#include <gtest/gtest.h>

#include "comm/process_group.h"
#include "shard_probe.h"

namespace headroom {
namespace {

using namespace shard_probe;

int64_t count_calls(const Plan& plan, std::string_view program, std::string_view op) {
  int64_t count = 0;
  for (const Instruction& instruction : plan.program(program)->instructions)
    count += instruction.kind == InstructionKind::call && op_name(*instruction.op) == op;
  return count;
}

void run_on_null(const Plan& plan) {
  const std::unique_ptr<Device> device = make_null_device(plan.facts);
  Executor executor(plan, *device, nullptr);
  const Trips trips[] = {{"micro_batches", 3}, {"eval_batches", 2}};
  for (int step = 0; step < 2; ++step)
    for (const PlanProgram& program : plan.programs) executor.run(program.name, trips);
  EXPECT_EQ(executor.arena_high_water(), plan.arena_bytes);
}

TEST(ShardPlan, RunsOnTheNullDevice) {
  for (const bool tied : {false, true})
    for (const int32_t parts : {1, 2, 3, 8}) {
      SCOPED_TRACE(fmt::format("tied {}, {} parts", tied, parts));
      Options options;
      options.tied = tied;
      options.layers = 2;
      run_on_null(make_plan(options, parts, cpu_facts(2)).plan);
    }
}

TEST(ShardPlan, RunsOnTheNullDeviceWithOtherTechniques) {
  Options options;
  options.layers = 3;
  options.candidate[techniques::recompute] = keep_setting(3, 2, Keep::block_input, Keep::no_cheap);
  options.candidate[techniques::micro_batch].count = 2;
  options.candidate[techniques::chunked_loss].count = 8;
  for (const bool copies : {false, true}) {
    options.precision = "bf16-mixed";
    options.candidate[techniques::bf16_mixed] = mixed(copies);
    run_on_null(make_plan(options, 2, cpu_facts(2)).plan);
  }
}

TEST(ShardPlan, FollowsTheFusedOptimizer) {
  Options options;
  options.layers = 2;
  options.clips = false;
  options.candidate[techniques::micro_batch].count = 4;
  options.candidate[*find_technique("fused-optimizer")].count = 1;
  const Planned plain = make_plan(options, 1, cpu_facts(2)), sharded = make_plan(options, 2, cpu_facts(2));
  EXPECT_LT(sharded.plan.arena_bytes, plain.plan.arena_bytes);
  const std::unique_ptr<Device> device = make_null_device(sharded.plan.facts);
  Executor executor(sharded.plan, *device, nullptr);
  const Trips trips[] = {{"micro_batches", 1}};
  for (int step = 0; step < 2; ++step) EXPECT_TRUE(executor.run("train_step", trips));
}

TEST(ShardPlan, MatricesAreSplitAndVectorsAreNot) {
  const Planned plain = make_plan({}, 1, cpu_facts(1)), sharded = make_plan({}, 2, cpu_facts(1));
  const int64_t vectors = 3 * 3 * 32 * 4;  // three norms, each with its two states
  EXPECT_EQ(training_bytes(sharded.plan) - vectors, (training_bytes(plain.plan) - vectors) / 2);
  for (const PersistentTensor& tensor : sharded.plan.tensors) {
    const std::vector<int64_t>& whole = plain.plan.tensor(tensor.name)->place.type.dims;
    const bool splits = whole.size() == 2 && (tensor.role == Role::parameter || tensor.role == Role::optimizer);
    EXPECT_EQ(tensor.place.type.dims[0], splits ? whole[0] / 2 : whole[0]) << tensor.name;
  }
}

// Nine matrices. Forward reads all of them, the loss inside the node of its gradient; backward reads the layer's seven
// again. The embedding's gradient does not read the table.
TEST(ShardPlan, GathersOncePerUseRegion) {
  const Plan plan = make_plan({}, 2, cpu_facts(1)).plan;
  EXPECT_EQ(count_calls(plan, "train_step", "all_gather_start"), 9 + 7);
  EXPECT_EQ(count_calls(plan, "train_step", "reduce_scatter_start"), 9);
  EXPECT_EQ(count_calls(plan, "train_step", "all_reduce_start"), 3 + 1 + 1);  // norms' gradients, gradient norm, loss
  EXPECT_EQ(count_calls(plan, "evaluate", "all_gather_start"), 9);
  EXPECT_EQ(count_calls(plan, "evaluate", "all_reduce_start"), 1);
  EXPECT_EQ(count_calls(plan, "load", "all_gather_start"), 0);
}

// Both the loss and the embedding scatter a tied table's gradient, into one accumulator.
TEST(ShardPlan, TiedTableIsScatteredAtEachUse) {
  Options options;
  options.tied = true;
  const Plan plan = make_plan(options, 2, cpu_facts(1)).plan;
  EXPECT_EQ(count_calls(plan, "train_step", "all_gather_start"), 2 + 14);
  EXPECT_EQ(count_calls(plan, "train_step", "reduce_scatter_start"), 2 + 7);
}

// In bf16 the narrow form is transferred, which is half the bytes.
TEST(ShardPlan, GathersTheNarrowForm) {
  Options options;
  options.precision = "bf16-mixed";
  for (const bool copies : {false, true}) {
    options.candidate[techniques::bf16_mixed] = mixed(copies);
    const Plan plan = make_plan(options, 2, cpu_facts(1)).plan;
    int64_t wide = 0;
    for (const Instruction& instruction : plan.program("train_step")->instructions)
      wide += instruction.kind == InstructionKind::call && op_name(*instruction.op) == "all_gather_start" &&
              instruction.outputs[0].type.dtype == DType::f32;
    EXPECT_EQ(wide, 1);  // the embedding reads the table itself
  }
}

TEST(ShardPlan, OnePartLeavesTheGraphAlone) {
  const Plan plan = make_plan({}, 1, cpu_facts(1)).plan;
  EXPECT_EQ(count_calls(plan, "train_step", "wait"), 0);
  Graph graph;
  EXPECT_THROW(shard(graph, 0), InternalError);
}

TEST(ShardPlan, IsRefusedTwice) {
  Planned planned = make_plan({}, 2, cpu_facts(1));
  EXPECT_THROW(shard(planned.graph, 2), InternalError);
}

TEST(SingleProcessGroup, CopiesAndClears) {
  const std::unique_ptr<ProcessGroup> group = make_single_process_group();
  EXPECT_EQ(group->size(), 1);
  EXPECT_EQ(group->rank(), 0);
  const std::vector<float> full{1, 2, 3};
  std::vector<float> local(4, 9), again(3);
  group->reduce_scatter(full, local);
  EXPECT_EQ(local, (std::vector<float>{1, 2, 3, 0}));
  group->all_gather(std::as_bytes(std::span(local)), std::as_writable_bytes(std::span(again)));
  EXPECT_EQ(again, full);
  std::vector<float> small(2);
  EXPECT_THROW(group->reduce_scatter(full, small), InternalError);
}

TEST(SingleProcessGroup, MpiIsRefusedWhereItIsNotBuilt) {
  if (has_mpi()) GTEST_SKIP() << "this build has MPI";
  EXPECT_THROW(make_mpi_process_group(), Error);
}

}  // namespace
}  // namespace headroom
