// A server whose weights are on disk: tokens are bitwise those of a server that holds them in memory, each step copies
// each matrix once, and the plan's regions, least budgets and bytes on disk are accurate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "../formats/expect_error.h"
#include "../runtime/race_checker.h"
#include "device/disk/scratch_file.h"
#include "engine/model_steps.h"
#include "engine/refusal.h"
#include "engine/serving.h"
#include "served_families.h"
#include "solo_text.h"
#include "tiny_generation.h"

namespace headroom {
namespace {

// Layers larger than the copies' buffers, even in 4 bits.
constexpr const char* kWideConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":258,"hidden_size":256,
"intermediate_size":2048,"num_hidden_layers":8,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
"rms_norm_eps":1e-5,"rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":false,"initializer_range":0.05,"torch_dtype":"float32"})";

constexpr int64_t kPlenty = int64_t{1} << 28;
constexpr int64_t kLongest = 40, kRows = 8, kSequences = 4;

struct Texts {
  std::vector<std::vector<int32_t>> ids;
  SchedulerCounts counts;
};

// Texts of seven requests, greedy and sampled, with shared beginnings: more than run at once, and with prompts longer
// than a step.
Texts texts_of(StepRunner& runner, AdmissionRule rule = AdmissionRule::guaranteed) {
  SchedulerOptions options;
  options.rule = rule;
  Scheduler scheduler(runner, options);
  std::vector<std::shared_ptr<HeardText>> heard;
  for (int32_t i = 0; i < 7; ++i) {
    SequenceRequest request;
    request.prompt = tiny_prompt(19 + i % 3);
    request.prompt[16] = 40 + i % 4;
    request.max_tokens = 6;
    request.sampling = {i % 2 == 0 ? 0.0 : 0.9, 1.0, 0, static_cast<uint64_t>(i)};
    heard.push_back(std::make_shared<HeardText>());
    request.listener = heard.back();
    std::vector<SequenceRequest> group;
    group.push_back(std::move(request));
    std::vector<SequenceId> ids;
    EXPECT_EQ(scheduler.add(std::move(group), ids), Admission::taken);
  }
  while (scheduler.step()) scheduler.check();
  Texts out;
  for (const auto& text : heard) out.ids.push_back(text->ids());
  out.counts = scheduler.counts();
  return out;
}

class ServedBelowTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      const ScratchFile file(directory_.path(), kDiskBlockBytes);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  InferenceOptions options(int64_t memory, int64_t disk = 0, std::map<std::string, std::string> pins = {}) const {
    InferenceOptions out;
    out.model = directory_ / "model";
    out.machine.memory = memory;
    out.machine.threads = 1;
    out.machine.profile = "cpu-avx2";
    out.machine.disk_memory = disk;
    if (disk > 0) out.machine.disk_directory = directory_.path();
    out.techniques.precision = precision_;
    out.techniques.pins = pins_;
    for (const auto& [name, setting] : pins) out.techniques.pins[name] = setting;
    return out;
  }
  static ServingOptions sizes() {
    ServingOptions serving;
    serving.max_model_len = kLongest;
    serving.max_num_seqs = kSequences;
    serving.max_num_batched_tokens = kRows;
    serving.block_size = 4;
    return serving;
  }
  static int64_t least(const InferenceOptions& options, const ServingOptions& serving) {
    InferenceOptions small = options;
    small.machine.memory = 1 << 20;
    return plan_serving(small, serving).plan.minimum_bytes;
  }

  static void expect_sound(const ServingPlan& plan) {
    int64_t sum = 0;
    std::set<std::string> names;
    for (const ServingRegion& region : plan.regions) {
      EXPECT_GE(region.bytes, 0) << region.name;
      EXPECT_TRUE(names.insert(region.name).second) << region.name;
      sum += region.bytes;
    }
    EXPECT_EQ(sum, plan.plan.peak_bytes);
    EXPECT_LE(plan.plan.peak_bytes, plan.plan.budget_bytes);
    EXPECT_LE(plan.disk_bytes(), plan.plan.disk.budget_bytes);
  }
  static int64_t region(const ServingPlan& plan, const std::string& name) {
    for (const ServingRegion& region : plan.regions)
      if (region.name == name) return region.bytes;
    return 0;
  }

  // A plan with weights in a lower tier gives the expected texts.
  static Texts expect_texts(const InferenceOptions& options, const ServingOptions& serving, const Texts& expected,
                            AdmissionRule rule = AdmissionRule::guaranteed) {
    ServingPlan plan = plan_serving(options, serving);
    EXPECT_TRUE(plan.plan.feasible);
    EXPECT_GT(plan.streamed.below_bytes, 0);
    expect_sound(plan);
    ServedModel model(options, std::move(plan));
    Texts found = texts_of(model.runner(), rule);
    EXPECT_EQ(found.ids, expected.ids);
    EXPECT_LE(model.arena_high_water(), model.plan().plan.arena_bytes);
    return found;
  }

  TemporaryDirectory directory_;
  std::string precision_ = "32-true";
  std::map<std::string, std::string> pins_;
};

struct Weights {
  const char* precision;
  const char* codes;  // of quantize-weights, or null
};

class ServedBelow : public ServedBelowTest, public testing::WithParamInterface<Weights> {
 protected:
  void SetUp() override {
    ServedBelowTest::SetUp();
    write_tiny_model(directory_, kWideConfig);
    precision_ = GetParam().precision;
    if (GetParam().codes) pins_["quantize-weights"] = GetParam().codes;
  }
  Texts expected() const {
    const InferenceOptions plain = options(kPlenty);
    ServedModel model(plain, plan_serving(plain, sizes()));
    return texts_of(model.runner());
  }
};

TEST_P(ServedBelow, TextsAreBitwiseTheSameAtTheLeastBudget) {
  const Texts wanted = expected();
  const int64_t below = least(options(1, kPlenty), sizes());
  EXPECT_LT(below, least(options(1), sizes()));
  const Texts found = expect_texts(options(below, kPlenty), sizes(), wanted);
  EXPECT_GT(found.counts.prefix_hits, 0);
  EXPECT_FALSE(plan_serving(options(below - 1, kPlenty), sizes()).plan.feasible);
}

TEST_P(ServedBelow, TextsAreBitwiseTheSameAtEveryPlacement) {
  const Texts wanted = expected();
  for (const char* layers : {"1", "7", "on"})
    for (const char* depth : {"off", "2"}) {
      SCOPED_TRACE(testing::Message() << layers << " layers, prefetch " << depth);
      expect_texts(options(kPlenty, kPlenty, {{"offload-parameters", layers}, {"prefetch", depth}}), sizes(), wanted);
    }
}

INSTANTIATE_TEST_SUITE_P(Weights, ServedBelow,
                         testing::Values(Weights{"32-true", nullptr}, Weights{"bf16-true", nullptr},
                                         Weights{"16-true", nullptr}, Weights{"32-true", "int8"},
                                         Weights{"bf16-true", "int4"}, Weights{"bf16-true", "nf4"},
                                         Weights{"bf16-true", "int8+embedding+head"}),
                         [](const auto& info) {
                           std::string name(info.param.precision);
                           name = name.substr(0, name.find('-')) + (info.param.codes ? info.param.codes : "");
                           std::erase(name, '+');
                           return name[0] == 'b' ? name : "f" + name;
                         });

class ServedBelowPlan : public ServedBelowTest {
 protected:
  void SetUp() override {
    ServedBelowTest::SetUp();
    write_tiny_model(directory_, kWideConfig);
  }
};

TEST_F(ServedBelowPlan, EveryStepCopiesEachMatrixOnce) {
  const ServingPlan plan = plan_serving(options(kPlenty, kPlenty, {{"offload-parameters", "on"}}), sizes());
  int64_t matrices = 0, steps = 0;
  for (const PersistentTensor& tensor : plan.plan.tensors)
    if (tensor.place.tier == Tier::disk) ++matrices;
  EXPECT_GT(matrices, 0);
  for (const PlanProgram& program : plan.plan.programs) {
    if (program.name == "load") continue;
    ++steps;
    std::multiset<int64_t> sources;
    int64_t bytes = 0;
    for (const Instruction& instruction : program.instructions)
      if (instruction.op->kind() == OpKind::copy_start) {
        sources.insert(instruction.inputs[0].offset);
        bytes += storage_bytes(instruction.inputs[0].type);
      }
    EXPECT_EQ(static_cast<int64_t>(sources.size()), matrices) << program.name;
    EXPECT_EQ(std::set<int64_t>(sources.begin(), sources.end()).size(), sources.size()) << program.name;
    EXPECT_EQ(bytes, plan.streamed.step_bytes) << program.name;
  }
  EXPECT_GT(steps, 1);
  EXPECT_EQ(plan.streamed.step_bytes, plan.streamed.below_bytes);
}

TEST_F(ServedBelowPlan, TheWindowsAreARegionAndTheBudgetFallsByWhatThePlanSays) {
  const ServingPlan resident = plan_serving(options(kPlenty), sizes());
  for (const char* depth : {"off", "1"}) {
    const ServingPlan below =
        plan_serving(options(kPlenty, kPlenty, {{"offload-parameters", "on"}, {"prefetch", depth}}), sizes());
    expect_sound(below);
    ASSERT_EQ(below.limits.blocks, resident.limits.blocks);
    const auto of = [&](const char* name) { return region(below, name) - region(resident, name); };
    EXPECT_EQ(below.plan.arena_bytes - resident.plan.arena_bytes, of("weights") + of("windows") + of("activations"));
    EXPECT_EQ(of("weights"), -below.streamed.below_bytes);
    EXPECT_EQ(region(below, "windows"), below.streamed.window_bytes);
    EXPECT_GE(below.disk_bytes(), below.streamed.below_bytes);
    const TechniqueReport& offload = below.plan.techniques.front();
    EXPECT_EQ(offload.name, "offload-parameters");
    EXPECT_EQ(resident.plan.arena_bytes - below.plan.arena_bytes, offload.saves_bytes);
    EXPECT_EQ(resident.plan.peak_bytes - below.plan.peak_bytes,
              offload.saves_bytes + resident.plan.process.total() - below.plan.process.total());
    EXPECT_FALSE(below.placement.empty());
  }
  EXPECT_EQ(region(resident, "windows"), 0);
  EXPECT_TRUE(resident.placement.empty());
}

TEST_F(ServedBelowPlan, NothingMovesWhereAllFits) {
  const int64_t fits = least(options(1), sizes());
  const ServingPlan plain = plan_serving(options(fits), sizes()),
                    beside = plan_serving(options(fits, kPlenty), sizes());
  EXPECT_EQ(beside.streamed.below_bytes, 0);
  EXPECT_EQ(beside.disk_bytes(), 0);
  EXPECT_EQ(beside.plan.peak_bytes, plain.plan.peak_bytes);
  EXPECT_EQ(beside.limits.blocks, plain.limits.blocks);
}

TEST_F(ServedBelowPlan, EveryBudgetFromTheLeastOnIsUsed) {
  for (const bool chosen : {false, true}) {
    ServingOptions serving = chosen ? ServingOptions{} : sizes();
    const int64_t low = least(options(1, kPlenty), serving), high = least(options(1), serving);
    ASSERT_LT(low, high);
    for (int64_t memory = low; memory < high; memory += (high - low) / 5 + 1) {
      const ServingPlan plan = plan_serving(options(memory, kPlenty), serving);
      ASSERT_TRUE(plan.plan.feasible) << memory;
      EXPECT_GT(plan.streamed.below_bytes, 0) << memory;
      EXPECT_EQ(plan.plan.minimum_bytes, low);
      EXPECT_GE(plan.limits.blocks, plan.limits.table_blocks);
      expect_sound(plan);
    }
  }
}

// When sizes have room, sequences and their blocks have priority over layers that stay.
TEST_F(ServedBelowPlan, BlocksThatSequencesCanFillComeBeforeLayers) {
  const int64_t memory = least(options(1), sizes()) - 1;
  const ServingPlan plan = plan_serving(options(memory, kPlenty), sizes());
  ASSERT_TRUE(plan.plan.feasible);
  EXPECT_GE(plan.limits.blocks, kSequences * plan.limits.table_blocks);
}

TEST_F(ServedBelowPlan, ADiskOfAFewLayersIsUsedWithAllSizes) {
  const int64_t memory = least(options(1), sizes()) - 1;
  const int64_t disk = plan_serving(options(kPlenty, kPlenty, {{"offload-parameters", "5"}}), sizes()).disk_bytes();
  const ServingPlan few = plan_serving(options(memory, disk), sizes());
  ASSERT_TRUE(few.plan.feasible);
  EXPECT_GT(few.streamed.below_bytes, 0);
  EXPECT_GT(few.limits.blocks, few.limits.table_blocks);
  expect_sound(few);
}

TEST_F(ServedBelowPlan, ARefusalNamesTheDiskThatWouldDo) {
  const ServingPlan refused = plan_serving(options(least(options(1), sizes()) - 1), sizes());
  ASSERT_FALSE(refused.plan.feasible);
  const std::string remedy = refusal_of(refused.plan).remedy;
  const size_t at = remedy.find("--disk-memory DIR:");
  ASSERT_NE(at, std::string::npos) << remedy;
  const int64_t bytes = std::stoll(remedy.substr(at + 18));
  EXPECT_TRUE(plan_serving(options(refused.plan.budget_bytes, bytes), sizes()).plan.feasible);
  const ServingPlan short_of = plan_serving(options(refused.plan.budget_bytes, bytes - 1), sizes());
  EXPECT_FALSE(short_of.plan.feasible);
  EXPECT_THAT(refusal_of(short_of.plan).remedy, testing::HasSubstr(fmt::format("--disk-memory DIR:{} or more", bytes)));
  const std::string least_remedy = refusal_of(plan_serving(options(1 << 20), sizes()).plan).remedy;
  EXPECT_THAT(least_remedy, testing::HasSubstr(fmt::format("--memory {} with --disk-memory DIR:",
                                                           least(options(1, kPlenty), sizes()))));
}

TEST_F(ServedBelowPlan, WhatDoesNotGoTogetherIsRefused) {
  const auto refuse = [&](const char* what, const InferenceOptions& options) {
    expect_error(ErrorKind::usage, what, [&] { plan_serving(options, sizes()); });
  };
  refuse("offload-parameters", options(kPlenty, 0, {{"offload-parameters", "on"}}));
  refuse("offload-parameters", options(kPlenty, 0, {{"offload-parameters", "disk"}}));
  refuse("offload-parameters", options(kPlenty, kPlenty, {{"offload-parameters", "host"}}));
  refuse("offload-parameters", options(kPlenty, kPlenty, {{"offload-parameters", "0"}}));
  refuse("offload-optimizer", options(kPlenty, kPlenty, {{"offload-optimizer", "on"}}));
  EXPECT_FALSE(plan_serving(options(least(options(1), sizes()) - 1, kPlenty, {{"offload-parameters", "off"}}), sizes())
                   .plan.feasible);
}

TEST_F(ServedBelowPlan, NoTwoAccessesAreUnordered) {
  const InferenceOptions plain = options(kPlenty);
  ServedModel resident(plain, plan_serving(plain, sizes()));
  const Texts wanted = texts_of(resident.runner());
  for (const char* depth : {"off", "1"}) {
    const ServingPlan plan =
        plan_serving(options(kPlenty, kPlenty, {{"offload-parameters", "on"}, {"prefetch", depth}}), sizes());
    test::RaceChecker device(open_device("cpu", plan.plan.facts, directory_.path()));
    Executor executor(plan.plan, device, nullptr);
    load_weights(executor, resident.files().spec, SafetensorsSet::open(directory_ / "model"));
    ModelSteps steps(executor, plan.limits);
    EXPECT_EQ(texts_of(steps).ids, wanted.ids);
    EXPECT_THAT(device.races(), testing::IsEmpty());
    EXPECT_GT(device.copies(), 0);
    for (const Tier tier : {Tier::device, Tier::disk})
      EXPECT_EQ(executor.arena_high_water(tier), plan.plan.arenas().of(tier)) << tier_name(tier);
  }
}

TEST_F(ServedBelowPlan, ADiskWithoutRoomIsRefusedBeforeAnythingIsLoaded) {
  InferenceOptions asked = options(kPlenty, int64_t{1} << 60, {{"offload-parameters", "on"}});
  ServingPlan plan = plan_serving(asked, sizes());
  plan.plan.disk.arena_bytes = int64_t{1} << 50;
  expect_error(ErrorKind::does_not_fit, directory_.path().c_str(), [&] { ServingRoom(asked, std::move(plan)); });
}

TEST_F(ServedBelowPlan, ParkedSequencesAndAdaptersGoWithIt) {
  const InferenceOptions plain = options(kPlenty);
  ServedModel resident(plain, plan_serving(plain, sizes()));
  const Texts wanted = texts_of(resident.runner());
  ServingOptions parking = sizes();
  parking.admission = "balanced";
  parking.park_memory = 1 << 16;
  const int64_t below = least(options(1, kPlenty), parking);
  const Texts parked = expect_texts(options(below, kPlenty), parking, wanted, AdmissionRule::balanced);
  ServingOptions slots = sizes();
  slots.lora.max_loras = 2;
  slots.lora.enabled = true;
  const ServingPlan plan = plan_serving(options(least(options(1, kPlenty), slots), kPlenty), slots);
  EXPECT_GT(region(plan, "lora_slots"), 0);
  for (const PersistentTensor& tensor : plan.plan.tensors)
    EXPECT_TRUE(tensor.place.tier == Tier::device || !tensor.name.starts_with(kSlotPrefix)) << tensor.name;
  expect_texts(options(plan.plan.budget_bytes, kPlenty), slots, wanted);
}

class ServedFamilyBelow : public ServedBelowTest, public testing::WithParamInterface<TinyModel> {};

TEST_P(ServedFamilyBelow, TextsAreBitwiseTheSame) {
  write_tiny_model(directory_, GetParam().config.dump().c_str());
  const InferenceOptions plain = options(kPlenty);
  ServedModel resident(plain, plan_serving(plain, sizes()));
  const Texts wanted = texts_of(resident.runner());
  expect_texts(options(kPlenty, kPlenty, {{"offload-parameters", "on"}}), sizes(), wanted);
}

INSTANTIATE_TEST_SUITE_P(Families, ServedFamilyBelow, testing::ValuesIn(served_families()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace headroom
