// The arena is filled with a pattern before a run: programs access no byte beyond the plan's, and read none that they
// have not written.
#include <gtest/gtest.h>

#include "tiny_run.h"

namespace headroom {
namespace {

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::string> state;
  int64_t highest_changed = 0;  // one past the last byte that differs from the pattern
};

Outcome run_poisoned(TinyRun& run, std::byte pattern) {
  Outcome outcome;
  run.begin(pattern);
  for (int64_t step = 1; step <= 3; ++step) outcome.losses.push_back(run.step(step));
  outcome.losses.push_back(run.evaluate());
  outcome.state = run.state();
  const std::span<std::byte> arena = run.executor().arena();
  size_t end = arena.size();
  while (end > 0 && arena[end - 1] == pattern) --end;
  outcome.highest_changed = static_cast<int64_t>(end);
  return outcome;
}

// One past the highest byte of any output of a kernel of training or evaluation. Above it is scratch, which is booked
// for the kernel of an op that needs the most, whichever runs.
int64_t highest_output(const Plan& plan) {
  int64_t highest = 0;
  for (const char* program : {"train_step", "evaluate"})
    for (const Instruction& instruction : plan.program(program)->instructions)
      for (const Operand& output : instruction.outputs)
        highest = std::max(highest, output.offset + storage_bytes(output.type));
  return highest;
}

void expect_poison_unread(const TrainOptions& options, const std::filesystem::path& scratch) {
  TinyRun run(options, scratch);
  ASSERT_TRUE(run.plan().feasible);
  const int64_t arena = run.plan().arena_bytes;
  const int64_t alignment = run.plan().facts.alignment;
  ASSERT_GT(run.plan().program("train_step")->peaks.device, arena - alignment)
      << "another program sets the arena's size";
  const Outcome zeros = run_poisoned(run, std::byte{0});
  ASSERT_LT(zeros.losses.back(), zeros.losses.front());
  // NaN in f32, bf16 and f64; a small negative number, or an offset far out of range, as an integer.
  for (const std::byte pattern : {std::byte{0xff}, std::byte{0xa5}}) {
    const Outcome poisoned = run_poisoned(run, pattern);
    EXPECT_EQ(poisoned.losses, zeros.losses);
    EXPECT_EQ(poisoned.state, zeros.state);
    EXPECT_GT(poisoned.highest_changed, highest_output(run.plan()) - alignment);
    EXPECT_GT(poisoned.highest_changed, arena * 9 / 10);
  }
  EXPECT_EQ(run.executor().arena_high_water(), arena);
}

// Batches large enough that activations exceed the staging buffers of load and save.
TrainOptions large_batches(const TemporaryDirectory& directory) {
  TrainOptions options = tiny_options(directory);
  options.data.max_seq_length = 64;
  options.data.global_batch_size = 40;
  return options;
}

struct PlanCase {
  const char* precision;
  const char* recompute;
  const char* config = kTinyConfig;
};

void PrintTo(const PlanCase& value, std::ostream* out) {
  *out << value.precision << " recompute " << value.recompute
       << (value.config == kTinyExpertsConfig ? " with experts" : "");
}

class PoisonedArena : public testing::TestWithParam<PlanCase> {};

TEST_P(PoisonedArena, IsNeitherReadNorLeft) {
  const TemporaryDirectory directory;
  const auto& [precision, recompute, config] = GetParam();
  write_tiny_model(directory, config);
  TrainOptions options = large_batches(directory);
  options.techniques.precision = precision;
  options.techniques.pins["recompute"] = recompute;
  options.data.micro_batch_size = 36;  // does not divide the batch: the last rows are padding
  expect_poison_unread(options, directory / "cache.bin");
}

INSTANTIATE_TEST_SUITE_P(Plans, PoisonedArena,
                         testing::Values(PlanCase{"32-true", "off"}, PlanCase{"32-true", "block-input"},
                                         PlanCase{"bf16-mixed", "off"}, PlanCase{"bf16-mixed", "drop-cheap"},
                                         PlanCase{"16-mixed", "drop-cheap"}, PlanCase{"16-true", "off"},
                                         PlanCase{"32-true", "block-input", kTinyExpertsConfig},
                                         PlanCase{"bf16-mixed", "off", kTinyExpertsConfig}),
                         [](const auto& info) { return "case" + std::to_string(info.index); });

TEST(PoisonedArena, FusedOptimizer) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  TrainOptions options = large_batches(directory);
  options.techniques.max_grad_norm = 0;
  options.data.micro_batch_size = 40;
  expect_poison_unread(options, directory / "cache.bin");
}

}  // namespace
}  // namespace headroom
