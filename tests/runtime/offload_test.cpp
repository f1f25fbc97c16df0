// Plans that keep states, gradients, weights or activations on the host or on disk: bitwise the plain run, with less
// device memory and all accesses ordered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/disk/scratch_file.h"
#include "ir/row_slice.h"
#include "passes/narrow_products.h"
#include "race_checker.h"
#include "tiny_run.h"

namespace headroom {
namespace {

constexpr int64_t kHost = int64_t{1} << 30;
constexpr const char* kOffloads[] = {"offload-optimizer", "offload-gradients", "offload-parameters",
                                     "offload-activations"};

// A run with a second tier, `host` bytes or the options' disk, with every access checked for races.
class CheckedRun {
 public:
  CheckedRun(const TrainOptions& options, const std::filesystem::path& scratch, int64_t host,
             const std::function<void(Plan&)>& change = {})
      : run(
            options, scratch,
            [&, this](const DeviceFacts& facts) {
              auto checker =
                  std::make_unique<test::RaceChecker>(open_device("cpu", facts, options.machine.disk_directory));
              checker_ = checker.get();
              return checker;
            },
            host, change) {}
  const std::vector<std::string>& races() const { return checker_->races(); }

 private:
  test::RaceChecker* checker_ = nullptr;

 public:
  TinyRun run;
};

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::string> state;
  Plan plan;
};

Outcome run(const TrainOptions& options, const std::filesystem::path& scratch, int64_t host) {
  CheckedRun checked(options, scratch, host);
  TinyRun& run = checked.run;
  Outcome outcome;
  outcome.plan = run.plan();
  EXPECT_TRUE(run.plan().feasible);
  run.begin(std::byte{0xff});  // NaN in every float type
  for (const PersistentTensor& tensor : run.plan().tensors) {
    if (!is_lora_name(tensor.name)) continue;
    run.executor().write(run.executor().tensor(tensor.name), [](int64_t first, std::span<std::byte> piece) {
      auto* const values = reinterpret_cast<float*>(piece.data());
      for (int64_t i = 0; i < static_cast<int64_t>(piece.size()) / 4; ++i)
        values[i] = 0.01f * static_cast<float>((first + i) % 17 - 8);
    });
  }
  if (options.techniques.lora.rank > 0) run.executor().run("load", {});
  for (int64_t step = 1; step <= 2; ++step) outcome.losses.push_back(run.step(step));
  outcome.losses.push_back(run.evaluate());
  outcome.state = run.state();
  // The planner keeps narrow copies of weights or not, whichever is faster.
  std::erase_if(outcome.state, [](const auto& entry) { return is_weight_copy(entry.first); });
  EXPECT_THAT(checked.races(), testing::IsEmpty());
  for (const Tier tier : kArenaTiers)
    EXPECT_EQ(run.executor().arena_high_water(tier), run.plan().arenas().of(tier)) << tier_name(tier);
  return outcome;
}

struct OffloadCase {
  const char* name;
  const char* config = kTinyConfig;
  const char* precision = "32-true";
  int64_t micro_batch = 2;  // of 6
  double max_grad_norm = 1;
  const char* recompute = "off";
  int64_t lora_rank = 0;
  const char* compress = "off";
};

void PrintTo(const OffloadCase& value, std::ostream* out) { *out << value.name; }

TrainOptions options_of(const OffloadCase& which, const TemporaryDirectory& directory) {
  TrainOptions options = tiny_options(directory);
  options.techniques.precision = which.precision;
  options.data.micro_batch_size = which.micro_batch;
  options.techniques.max_grad_norm = which.max_grad_norm;
  options.techniques.lora.rank = which.lora_rank;
  options.techniques.pins = {
      {"recompute", which.recompute}, {"chunked-loss", "64"}, {"compress-activations", which.compress}};
  return options;
}

// The options with a disk for what is kept there.
TrainOptions with_disk(TrainOptions options, const TemporaryDirectory& directory) {
  options.machine.disk_directory = directory.path();
  options.machine.disk_memory = kHost;
  return options;
}

// Tests with a disk need a directory on one.
bool is_on_disk(const TemporaryDirectory& directory) {
  try {
    const ScratchFile file(directory.path(), kDiskBlockBytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Offload : public testing::TestWithParam<OffloadCase> {
 protected:
  // Each offload alone, then all together, with several depths.
  void expect_bitwise(const Outcome& plain, TrainOptions options, Tier tier, const TemporaryDirectory& directory) {
    if (tier == Tier::disk) options = with_disk(options, directory);
    for (size_t which = 0; which <= std::size(kOffloads); ++which)
      for (const char* depth : {"off", "1", "3"}) {
        const bool alone = which < std::size(kOffloads);
        if (alone && (depth[0] == '3' || (tier == Tier::disk && depth[0] != '1'))) continue;
        for (size_t i = 0; i < std::size(kOffloads); ++i)
          options.techniques.pins[kOffloads[i]] = which == i || which == std::size(kOffloads) ? "on" : "off";
        if (depth[0] == '3') options.techniques.pins["offload-parameters"] = "2";  // layers of three
        options.techniques.pins["prefetch"] = depth;
        SCOPED_TRACE(which < std::size(kOffloads) ? kOffloads[which] : "all");
        SCOPED_TRACE(depth);
        const Outcome offloaded = run(options, directory / "cache.bin", tier == Tier::host ? kHost : 0);
        EXPECT_EQ(offloaded.losses, plain.losses);
        EXPECT_EQ(offloaded.state, plain.state);
        EXPECT_EQ(offloaded.plan.choices.flag("fused_optimizer"), plain.plan.choices.flag("fused_optimizer"));
        // Nothing to move for gradients that are not carried; states and gradients of adapters are matrices as well.
        const bool empty = plain.plan.choices.flag("fused_optimizer") && which == 1;
        EXPECT_EQ(offloaded.plan.below(tier).arena_bytes > 0, !empty);
      }
  }
};

TEST_P(Offload, IsBitwiseThePlainRunAtEveryDepth) {
  const TemporaryDirectory directory;
  write_tiny_model(directory, GetParam().config);
  const TrainOptions options = options_of(GetParam(), directory);
  const Outcome plain = run(options, directory / "cache.bin", 0);
  ASSERT_EQ(plain.plan.host.arena_bytes, 0);
  expect_bitwise(plain, options, Tier::host, directory);
}

TEST_P(Offload, OnDiskIsBitwiseThePlainRun) {
  const TemporaryDirectory directory;
  if (!is_on_disk(directory)) GTEST_SKIP() << directory.path() << " is in memory";
  write_tiny_model(directory, GetParam().config);
  const TrainOptions options = options_of(GetParam(), directory);
  expect_bitwise(run(options, directory / "cache.bin", 0), options, Tier::disk, directory);
}

// Each offload has its own tier, the host or the disk.
TEST_P(Offload, InSeveralTiersIsBitwiseThePlainRun) {
  const TemporaryDirectory directory;
  if (!is_on_disk(directory)) GTEST_SKIP() << directory.path() << " is in memory";
  write_tiny_model(directory, GetParam().config);
  const TrainOptions options = options_of(GetParam(), directory);
  const Outcome plain = run(options, directory / "cache.bin", 0);
  for (const std::array<const char*, 5>& setting :
       {std::array{"disk", "host", "host", "disk:1", "3"}, std::array{"host", "disk", "disk", "host", "1"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(setting, ", ")));
    TrainOptions mixed = with_disk(options, directory);
    for (size_t i = 0; i < std::size(kOffloads); ++i) mixed.techniques.pins[kOffloads[i]] = setting[i];
    mixed.techniques.pins["prefetch"] = setting.back();
    const Outcome offloaded = run(mixed, directory / "cache.bin", kHost);
    EXPECT_EQ(offloaded.losses, plain.losses);
    EXPECT_EQ(offloaded.state, plain.state);
    for (const Tier tier : kLowerTiers) EXPECT_GT(offloaded.plan.below(tier).arena_bytes, 0) << tier_name(tier);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, Offload,
    testing::Values(OffloadCase{"Accumulated"}, OffloadCase{"OneMicroBatch", kTinyConfig, "32-true", 6},
                    OffloadCase{"Fused", kTinyConfig, "32-true", 6, 0},
                    OffloadCase{"Recomputed", kTinyConfig, "32-true", 3, 1, "block-input"},
                    OffloadCase{"Compressed", kTinyConfig, "32-true", 3, 1, "drop-cheap", 0, "int8"},
                    OffloadCase{"MixedPrecision", kTinyConfig, "bf16-mixed", 3, 1, "drop-cheap"},
                    OffloadCase{"HalfWeights", kTinyConfig, "bf16-true", 4},
                    OffloadCase{"Fp16Mixed", kTinyConfig, "16-mixed", 3, 1, "drop-cheap"},
                    OffloadCase{"Fp16Weights", kTinyConfig, "16-true", 4, 0},
                    OffloadCase{"LargeTable", kTinyTableConfig},
                    OffloadCase{"LargeTableFused", kTinyTableConfig, "32-true", 6, 0},
                    OffloadCase{"LargeTableMixed", kTinyTableConfig, "bf16-mixed", 3},
                    OffloadCase{"LargeTableHalf", kTinyTableConfig, "bf16-true", 4},
                    OffloadCase{"Adapters", kTinyConfig, "32-true", 3, 1, "off", 4},
                    OffloadCase{"Experts", kTinyExpertsConfig, "32-true", 3, 1, "drop-attention"},
                    OffloadCase{"ExpertAdapters", kTinyExpertsConfig, "32-true", 3, 1, "off", 4},
                    OffloadCase{"ExpertAdaptersMixed", kTinyExpertsConfig, "bf16-mixed", 2, 1, "drop-cheap", 4}),
    [](const auto& info) { return info.param.name; });

// With states and gradients on the host, the device keeps the weights and little else.
TEST(Offload, TakesFromTheDeviceWhatItPutsOnTheHost) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  TrainOptions options = options_of({"Bytes"}, directory);
  const Plan plain = run(options, directory / "cache.bin", 0).plan;
  options.techniques.pins["offload-optimizer"] = "on";
  options.techniques.pins["prefetch"] = "off";
  const Plan states = run(options, directory / "cache.bin", kHost).plan;
  EXPECT_EQ(states.host.breakdown.optimizer, states.host.arena_bytes - states.host.breakdown.alignment);
  EXPECT_GT(states.host.breakdown.optimizer, plain.breakdown.optimizer * 9 / 10);
  EXPECT_LT(states.arena_bytes, plain.arena_bytes);
  options.techniques.pins["offload-gradients"] = "on";
  const Plan gradients = run(options, directory / "cache.bin", kHost).plan;
  EXPECT_GT(gradients.host.breakdown.gradients, 0);
  EXPECT_LE(gradients.arena_bytes, states.arena_bytes);
}

// The numbers of rows that a plan's updates work on, in order; 0 for all rows.
std::vector<int64_t> updated_rows(const Plan& plan) {
  std::vector<int64_t> rows;
  for (const PlanProgram& program : plan.programs)
    for (const Instruction& instruction : program.instructions)
      if (instruction.op->kind() == OpKind::update && instruction.inputs[0].type.dims.size() == 2)
        if (const std::optional<RowSlice> slice = row_slice(instruction.attrs)) rows.push_back(slice->rows);
  return rows;
}

// The update of a table has windows of 512 rows, which take 64 KiB, and one of the two remaining rows.
TEST(Offload, UpdatesALargeTableInSlices) {
  const TemporaryDirectory directory;
  write_tiny_model(directory, kTinyTableConfig);
  TrainOptions options = options_of({"Bytes"}, directory);
  options.techniques.pins["prefetch"] = "off";
  EXPECT_THAT(updated_rows(run(options, directory / "cache.bin", 0).plan), testing::IsEmpty());
  options.techniques.pins["offload-optimizer"] = "on";
  EXPECT_THAT(updated_rows(run(options, directory / "cache.bin", kHost).plan),
              testing::ElementsAre(512, 512, 512, 512, 2));
}

// A missing wait is detected: each of the waits for copies to the device, and all the others together.
TEST(Offload, MissingWaitsAreFound) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  TrainOptions options = options_of({"Mutations"}, directory);
  options.techniques.pins["offload-optimizer"] = "on";
  options.techniques.pins["offload-activations"] = "on";
  CheckedRun sound(options, directory / "cache.bin", kHost);
  const std::vector<Instruction>& step = sound.run.plan().program("train_step")->instructions;
  // Adjacent waits are removed together, because each covers those before it on its stream.
  int groups = 0;
  for (size_t begin = 0, end = 0; begin < step.size(); begin = end) {
    end = begin + 1;
    if (!step[begin].op || op_name(*step[begin].op) != "wait") continue;
    const Tier tier = step[begin].outputs[0].tier;
    while (end < step.size() && op_name(*step[end].op) == "wait" && step[end].outputs[0].tier == tier) ++end;
    if (tier != Tier::device || ++groups % 5 != 1) continue;
    CheckedRun broken(options, directory / "cache.bin", kHost, [&](Plan& plan) {
      for (PlanProgram& program : plan.programs)
        if (program.name == "train_step")
          program.instructions.erase(program.instructions.begin() + static_cast<std::ptrdiff_t>(begin),
                                     program.instructions.begin() + static_cast<std::ptrdiff_t>(end));
    });
    broken.run.begin(std::byte{0});
    broken.run.step(1), broken.run.step(2);
    EXPECT_FALSE(broken.races().empty()) << "without the waits at " << begin;
  }
  EXPECT_GT(groups, 10);
  CheckedRun deaf(options, directory / "cache.bin", kHost, [&](Plan& plan) {
    for (PlanProgram& program : plan.programs)
      std::erase_if(program.instructions, [](const Instruction& instruction) {
        return instruction.kind == InstructionKind::call && op_name(*instruction.op) == "wait" &&
               instruction.outputs[0].tier == Tier::host;
      });
  });
  deaf.run.begin(std::byte{0});
  deaf.run.step(1), deaf.run.step(2);
  EXPECT_FALSE(deaf.races().empty());
}

}  // namespace
}  // namespace headroom
