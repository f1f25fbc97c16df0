// Random plans, as a GPU with host memory or a disk below it would run them: no reuse of a byte of any arena races
// between kernels and copies, and a removed wait is detected. The null device executes them; it also checks that inputs
// still hold what was written there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "../models/tiny_families.h"
#include "engine/training_request.h"
#include "planner/search.h"
#include "race_checker.h"
#include "runtime/executor.h"
#include "weights/model_files.h"

namespace headroom {
namespace {

using test::RaceChecker;

// Random numbers that are the same on every machine.
class Draw {
 public:
  explicit Draw(uint32_t seed) : bits_(seed) {}
  int64_t below(int64_t count) { return static_cast<int64_t>(bits_() % static_cast<uint32_t>(count)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  std::string one_of(std::initializer_list<const char*> words) {
    return words.begin()[below(static_cast<int64_t>(words.size()))];
  }

 private:
  std::mt19937 bits_;
};

ModelFiles draw_model(Draw& draw) {
  static const std::vector<TinyModel> models = tiny_families();
  TinyModel tiny = models[static_cast<size_t>(draw.below(static_cast<int64_t>(models.size())))];
  tiny.config["num_hidden_layers"] = tiny.config["n_layer"] = 1 + draw.below(4);
  ModelFiles model;
  model.config = HfConfig::parse(tiny.config.dump(), tiny.name + "/config.json");
  model.spec = read_model_spec(model.config);
  return model;
}

// A setting for an offload to the host, the disk, or both.
std::string draw_tier(Draw& draw, int64_t tiers) {
  return tiers == 0   ? draw.one_of({"on", "host"})
         : tiers == 1 ? draw.one_of({"on", "disk"})
                      : draw.one_of({"on", "host", "disk", "disk"});
}

TrainOptions draw_options(Draw& draw) {
  TrainOptions options;
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.machine.memory = int64_t{1} << 40;
  const int64_t tiers = draw.below(3);  // the host, the disk, or both
  if (tiers != 1) options.machine.host_memory = options.machine.memory;
  if (tiers != 0) options.machine.disk_memory = options.machine.memory;
  options.data.global_batch_size = 6;
  options.techniques.precision = draw.one_of({"32-true", "bf16-mixed", "bf16-true"});
  if (draw.chance(70)) options.data.micro_batch_size = 1 + draw.below(6);
  if (draw.chance(30)) options.techniques.max_grad_norm = 0;
  if (draw.chance(20)) options.techniques.lora.rank = 2;
  if (draw.chance(20)) options.techniques.allow = {"packing"};
  if (draw.chance(80))
    options.techniques.pins["recompute"] = draw.one_of({"off", "drop-cheap", "drop-attention", "block-input"});
  if (draw.chance(80)) options.techniques.pins["chunked-loss"] = draw.one_of({"off", "7", "64"});
  for (const char* name : {"offload-optimizer", "offload-gradients", "offload-parameters", "offload-activations"})
    if (draw.chance(90)) options.techniques.pins[name] = draw.chance(50) ? "off" : draw_tier(draw, tiers);
  if (draw.chance(20)) options.techniques.pins["offload-parameters"] = "2";
  if (draw.chance(80)) options.techniques.pins["prefetch"] = draw.one_of({"off", "1", "2", "3", "7"});
  return options;
}

// With a device budget between the least and what the fastest candidate takes.
Plan draw_plan(Draw& draw) {
  const ModelFiles model = draw_model(draw);
  TrainOptions options = draw_options(draw);
  PlanRequest request = training_request(options, model);
  request.facts.gemm_workspace_cap = 1 << 12;  // otherwise it dominates so small a model
  const Plan plenty = search_training_plan(request).plan;
  if (draw.chance(40)) return plenty;
  request.budget_bytes = plenty.minimum_bytes + (plenty.peak_bytes - plenty.minimum_bytes) * draw.below(4) / 4;
  return search_training_plan(request).plan;
}

// Two steps of three micro-batches with an evaluation between them, checked while they run.
std::vector<std::string> races_of(const Plan& plan, bool deaf = false, int64_t* copies = nullptr) {
  RaceChecker device(make_null_device(plan.facts), deaf);
  Executor executor(plan, device, nullptr);
  const Trips trips[] = {{"micro_batches", 3}, {"eval_batches", 2}};
  for (const char* program : {"load", "train_step", "evaluate", "train_step", "save"}) executor.run(program, trips);
  if (copies) *copies = device.copies();
  return device.races();
}

bool is_op(const Instruction& instruction, std::string_view name) {
  return instruction.kind == InstructionKind::call && op_name(*instruction.op) == name;
}

bool overlap(const Operand& a, const Operand& b) {
  return a.tier == b.tier && a.offset < b.offset + storage_bytes(b.type) && b.offset < a.offset + storage_bytes(a.type);
}

// The first instruction after the wait that uses the copied value.
size_t first_use(const std::vector<Instruction>& instructions, size_t wait) {
  const Operand& copied = instructions[wait].outputs[0];
  const auto touches = [&](const Operand& operand) { return overlap(operand, copied); };
  size_t at = wait + 1;
  for (; at < instructions.size(); ++at) {
    const Instruction& user = instructions[at];
    if (user.kind != InstructionKind::call || is_op(user, "wait")) continue;
    if (std::ranges::any_of(user.inputs, touches) || std::ranges::any_of(user.outputs, touches)) break;
  }
  return at;
}

// Waits for copies to the device that no other wait makes redundant: copies from one tier are done in order, so waiting
// for a later copy before the first use would also do.
std::vector<size_t> needed_waits(const std::vector<Instruction>& instructions) {
  struct Wait {
    size_t at = 0, started = 0;
    Tier from = Tier::host;
  };
  std::map<int64_t, size_t> started;  // by the token's offset
  std::vector<Wait> waits;
  for (size_t at = 0; at < instructions.size(); ++at) {
    const Instruction& instruction = instructions[at];
    if (is_op(instruction, "copy_start")) started[instruction.outputs[1].offset] = at;
    if (is_op(instruction, "wait") && instruction.outputs[0].tier == Tier::device) {
      const size_t start = started.at(instruction.inputs[1].offset);
      waits.push_back({at, start, instructions[start].inputs[0].tier});
    }
  }
  std::vector<size_t> needed;
  for (const Wait& wait : waits) {
    const size_t use = first_use(instructions, wait.at);
    const auto stands_in = [&](const Wait& w) { return w.from == wait.from && w.started > wait.started && w.at < use; };
    if (std::ranges::none_of(waits, stands_in)) needed.push_back(wait.at);
  }
  return needed;
}

std::vector<Instruction>& step_of(Plan& plan) {
  return std::find_if(plan.programs.begin(), plan.programs.end(),
                      [](const PlanProgram& program) { return program.name == "train_step"; })
      ->instructions;
}

void take_out(std::vector<Instruction>& instructions, size_t at) {
  instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(at));
}

// Removes one of the waits that the plan needs; returns false when it has none.
bool take_out_a_wait(Plan& plan, Draw& draw) {
  const std::vector<size_t> waits = needed_waits(step_of(plan));
  if (waits.empty()) return false;
  take_out(step_of(plan), waits[static_cast<size_t>(draw.below(static_cast<int64_t>(waits.size())))]);
  return true;
}

constexpr uint32_t kPlans = 30;  // per test

class EveryPlan : public testing::TestWithParam<uint32_t> {};

TEST_P(EveryPlan, HasNoRacesAndNeedsItsWaits) {
  int64_t copying = 0, planted = 0, on_disk = 0, mixed = 0;
  for (uint32_t seed = GetParam() * kPlans; seed < (GetParam() + 1) * kPlans; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Draw draw(seed);
    Plan plan = draw_plan(draw);
    ASSERT_TRUE(plan.feasible);
    int64_t copies = 0;
    EXPECT_THAT(races_of(plan, false, &copies), testing::IsEmpty());
    if (copies == 0) continue;
    ++copying;
    on_disk += plan.disk.arena_bytes > 0;
    mixed += plan.disk.arena_bytes > 0 && plan.host.arena_bytes > 0;
    if (seed % 5 == 0) {
      EXPECT_FALSE(races_of(plan, true).empty()) << "copies do not wait for kernels";
    }
    if (!take_out_a_wait(plan, draw)) continue;
    ++planted;
    EXPECT_FALSE(races_of(plan).empty()) << "a wait is missing";
  }
  EXPECT_GT(copying, kPlans / 2);
  EXPECT_GT(planted, kPlans / 3);
  EXPECT_GT(on_disk, kPlans / 6);
  EXPECT_GT(mixed, 0);
}

INSTANTIATE_TEST_SUITE_P(Drawn, EveryPlan, testing::Range(uint32_t{0}, uint32_t{8}));

// Everything is on a disk below a GPU: each needed wait for copies from there, and those for copies to there.
TEST(DiskBelowAGpu, NeedsEachOfItsWaits) {
  Draw draw(0);
  TrainOptions options = draw_options(draw);
  options.machine.host_memory = 0;
  options.machine.disk_memory = options.machine.memory;
  options.data.micro_batch_size = 2;
  options.techniques.pins = {{"offload-optimizer", "on"},
                             {"offload-gradients", "on"},
                             {"offload-parameters", "on"},
                             {"offload-activations", "on"},
                             {"prefetch", "2"}};
  Plan plan = search_training_plan(training_request(options, draw_model(draw))).plan;
  ASSERT_TRUE(plan.feasible);
  EXPECT_THAT(races_of(plan), testing::IsEmpty());
  const std::vector<size_t> needed = needed_waits(step_of(plan));
  EXPECT_GT(needed.size(), size_t{20});
  for (const size_t at : needed) {
    Plan broken = plan;
    take_out(step_of(broken), at);
    EXPECT_FALSE(races_of(broken).empty()) << "without the wait at " << at;
  }
  std::erase_if(step_of(plan), [](const Instruction& instruction) {
    return is_op(instruction, "wait") && instruction.outputs[0].tier == Tier::disk;
  });
  EXPECT_FALSE(races_of(plan).empty()) << "without the waits for copies to disk";
}

}  // namespace
}  // namespace headroom
