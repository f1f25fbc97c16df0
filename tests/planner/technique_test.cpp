// Pins are applied and reported; pins that cannot be applied are refused with the reason.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "planner/pipeline.h"
#include "planner/techniques/recompute.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

Choices choices_with(const std::map<std::string, std::string>& techniques, TrainOptions options = fixed_options()) {
  options.techniques.pins = techniques;
  const Plan chosen = plan(options, small_model()).plan;
  EXPECT_TRUE(chosen.feasible);
  return chosen.choices;
}

std::string refusal(const std::map<std::string, std::string>& techniques, TrainOptions options = fixed_options(),
                    const ModelFiles& model = small_model()) {
  options.techniques.pins = techniques;
  try {
    plan(options, model);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return std::string(error.what()) + " | " + error.remedy();
  }
  return "accepted";
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Techniques, PinsAreHonoured) {
  EXPECT_EQ(choices_with({{"micro-batch", "3"}}).micro_batch, 3);
  EXPECT_EQ(choices_with({{"micro-batch", "3"}}).accumulation, 3);
  EXPECT_EQ(choices_with({{"micro-batch", "1000"}}).micro_batch, 8);
  EXPECT_EQ(choices_with({{"chunked-loss", "100"}}).integer("loss_chunk_rows"), 100);
  EXPECT_EQ(choices_with({{"chunked-loss", "off"}}).integer("loss_chunk_rows"), 0);
  EXPECT_EQ(choices_with({{"recompute", "on"}}).text("recompute"), "6 x block-input");
  EXPECT_EQ(choices_with({{"recompute", "block-input"}}).text("recompute"), "6 x block-input");
  EXPECT_EQ(choices_with({{"recompute", "drop-attention"}}).text("recompute"), "6 x drop-attention");
  EXPECT_EQ(choices_with({{"recompute", "drop-cheap"}}).text("recompute"), "6 x drop-cheap");
  EXPECT_EQ(choices_with({{"recompute", "off"}}).text("recompute"), "6 x keep-all");
}

TEST(Techniques, PinnedMicroBatchOptionIsHonoured) {
  TrainOptions options = fixed_options();
  options.data.micro_batch_size = 5;
  const Choices choices = choices_with({}, options);
  EXPECT_EQ(choices.micro_batch, 5);
  EXPECT_EQ(choices.accumulation, 2);
}

TEST(Techniques, FusedOptimizerFollowsClippingAndMicroBatch) {
  TrainOptions unclipped = fixed_options();
  unclipped.techniques.max_grad_norm = 0;
  EXPECT_FALSE(choices_with({{"fused-optimizer", "off"}, {"micro-batch", "8"}}, unclipped).flag("fused_optimizer"));
  EXPECT_TRUE(choices_with({{"micro-batch", "8"}}, unclipped).flag("fused_optimizer"));
  EXPECT_FALSE(choices_with({{"micro-batch", "4"}}, unclipped).flag("fused_optimizer"));
  const Choices pinned = choices_with({{"fused-optimizer", "on"}}, unclipped);
  EXPECT_TRUE(pinned.flag("fused_optimizer"));
  EXPECT_EQ(pinned.micro_batch, 8);
  EXPECT_FALSE(choices_with({{"micro-batch", "8"}}).flag("fused_optimizer"));
}

TEST(Techniques, PrecisionIsRecorded) {
  TrainOptions options = fixed_options();
  options.techniques.precision = "bf16-mixed";
  EXPECT_EQ(choices_with({{"bf16-mixed", "on"}}, options).text("precision"), "bf16-mixed");
  EXPECT_EQ(choices_with({}).text("precision"), "32-true");
}

std::vector<std::string> every_name() {
  std::vector<std::string> names;
  for (const Technique* technique : all_techniques()) names.emplace_back(technique->name());
  return names;
}

TEST(Techniques, EveryOneIsReportedWithAReason) {
  TrainOptions options = fixed_options();
  const int64_t least = plan(options, small_model()).plan.minimum_bytes;
  for (int64_t budget : {least, options.machine.memory}) {
    options.machine.memory = budget;
    const Plan chosen = plan(options, small_model()).plan;
    std::vector<std::string> names;
    for (const TechniqueReport& report : chosen.techniques) {
      names.push_back(report.name);
      EXPECT_FALSE(report.why.empty()) << report.name;
      EXPECT_FALSE(report.value.empty()) << report.name;
    }
    EXPECT_EQ(names, every_name());
  }
}

std::string reason_for(const std::string& name, const TrainOptions& options) {
  for (const TechniqueReport& report : plan(options, small_model()).plan.techniques)
    if (report.name == name) return report.why;
  return "not reported";
}

TEST(Techniques, PinsAreReportedAsTheUsers) {
  TrainOptions options = fixed_options();
  options.techniques.pins = {
      {"micro-batch", "2"}, {"chunked-loss", "64"}, {"recompute", "block-input"}, {"fused-optimizer", "off"}};
  for (const auto& [name, value] : options.techniques.pins)
    EXPECT_EQ(reason_for(name, options), "pinned by --technique " + name + "=" + value);
  options.techniques.pins = {
      {"micro-batch", "8"}, {"chunked-loss", "off"}, {"recompute", "off"}, {"fused-optimizer", "on"}};
  options.techniques.max_grad_norm = 0;
  for (const auto& [name, value] : options.techniques.pins)
    EXPECT_EQ(reason_for(name, options), "pinned by --technique " + name + "=" + value);
  options.techniques.pins = {{"micro-batch", "on"}, {"bf16-mixed", "on"}};
  options.techniques.precision = "bf16-mixed";
  EXPECT_EQ(reason_for("micro-batch", options).find("pinned"), std::string::npos);
  EXPECT_EQ(reason_for("bf16-mixed", options).find("pinned by --technique bf16-mixed=on"), 0U);
  options.techniques.pins.clear();
  options.data.micro_batch_size = 2;
  EXPECT_EQ(reason_for("micro-batch", options), "pinned by --micro-batch-size");
  for (const char* name : {"chunked-loss", "recompute", "fused-optimizer", "bf16-mixed"})
    EXPECT_EQ(reason_for(name, options).find("pinned"), std::string::npos) << name;
}

TEST(Techniques, ChunksOfTheLossEndAtTheRows) {
  TrainOptions options = fixed_options();
  options.techniques.pins = {{"chunked-loss", "1000000"}, {"micro-batch", "2"}};
  const Plan large = plan(options, small_model()).plan;
  EXPECT_EQ(large.choices.integer("loss_chunk_rows"), 2 * large.choices.seq_length);
  options.techniques.pins["chunked-loss"] = "off";
  EXPECT_EQ(plan(options, small_model()).plan.arena_bytes, large.arena_bytes);
}

TEST(Techniques, SavingsAndCostsOfRecomputationArePositive) {
  TrainOptions options = fixed_options();
  options.techniques.pins = {{"recompute", "on"}, {"micro-batch", "8"}};
  for (const TechniqueReport& report : plan(options, small_model()).plan.techniques)
    if (report.name == "recompute") {
      EXPECT_GT(report.saves_bytes, 0);
      EXPECT_GT(report.costs_seconds, 0);
    }
}

// What --allow, the ladder and messages say of a technique comes from its record.
TEST(Techniques, RecordsSayHowTheyAreAskedFor) {
  std::set<std::pair<TechniqueKind, int>> places;
  for (const Technique* technique : all_techniques()) {
    const std::string name(technique->name());
    const auto [option, value] = asked_by(*technique);
    EXPECT_TRUE(option.starts_with("--")) << name;
    EXPECT_FALSE(value.empty()) << name;
    if (technique->option.option.empty()) {
      EXPECT_EQ(option, "--technique");
      EXPECT_EQ(value.find(name + "="), 0U) << value;
    } else {
      EXPECT_NE(technique_set_by(option), nullptr) << option;
    }
    EXPECT_FALSE(technique->by_permission && is_planners_choice(*technique)) << name;
    if (technique->ladder.at > 0) {
      EXPECT_TRUE(places.emplace(technique->info->kind, technique->ladder.at).second) << name;
    }
  }
  EXPECT_EQ(technique_set_by("--gradient-checkpointing"), find_technique("recompute"));
  EXPECT_EQ(technique_set_by("--max-steps"), nullptr);
}

TEST(Techniques, UnknownNamesGetTheNearest) {
  const std::string text = refusal({{"recompue", "on"}});
  EXPECT_MENTIONS(text, "recompue");
  EXPECT_MENTIONS(text, "'recompute'");
}

TEST(Techniques, OnesOfLaterVersionsAreRefusedUnlessOff) {
  EXPECT_MENTIONS(refusal({{"ring-attention", "on"}}), "not built");
  EXPECT_EQ(refusal({{"ring-attention", "off"}}), "accepted");
}

TEST(Techniques, NamesOfOtherOptionsAreRefusedWithTheOption) {
  EXPECT_MENTIONS(refusal({{"optimizer-8bit", "on"}}), "--optim adamw_8bit");
  EXPECT_MENTIONS(refusal({{"paged-optimizer", "on"}}), "--optim paged_adamw_32bit");
  EXPECT_EQ(refusal({{"optimizer-8bit", "off"}}), "accepted");
}

TEST(Techniques, AdaptersAndFrozenWeightsNeedLess) {
  TrainOptions options = fixed_options();
  const Plan whole = plan(options, small_model()).plan;
  options.techniques.freeze = {"layers.0-3", "embed_tokens"};
  const Plan frozen = plan(options, small_model()).plan;
  options.techniques.freeze.clear();
  options.techniques.lora.rank = 4;
  const Plan adapted = plan(options, small_model()).plan;
  for (const Plan* part : {&frozen, &adapted}) {
    EXPECT_LT(part->minimum_bytes, whole.minimum_bytes);
    EXPECT_LT(part->arena_bytes, whole.arena_bytes);
  }
  options.techniques.freeze = {"layers.0"};
  EXPECT_THROW(plan(options, small_model()), Error);
}

// A vector in fp32 for each row of an adapted matrix, with gradient and states, and an operand that its gradient reads.
TEST(Techniques, MagnitudesOfAdaptersArePlanned) {
  TrainOptions options = fixed_options();
  options.techniques.lora.rank = 4;
  options.techniques.lora.targets = {"q_proj"};
  const Plan plain = plan(options, small_model()).plan;
  options.techniques.lora.decomposed = true;
  const Plan dora = plan(options, small_model()).plan;
  const auto bytes = [](const Plan& plan, Role role) {
    int64_t sum = 0;
    for (const PersistentTensor& tensor : plan.tensors)
      if (tensor.role == role) sum += storage_bytes(tensor.place.type);
    return sum;
  };
  int64_t rows = 0;
  for (const PersistentTensor& tensor : plain.tensors)
    if (tensor.name.ends_with("model.layers.0.self_attn.q_proj.weight")) rows = tensor.place.type.dims[0];
  rows *= small_model().spec.layers * static_cast<int64_t>(sizeof(float));
  ASSERT_GT(rows, 0);
  EXPECT_EQ(bytes(dora, Role::parameter) - bytes(plain, Role::parameter), rows);
  EXPECT_EQ(bytes(dora, Role::optimizer) - bytes(plain, Role::optimizer), 2 * rows);
  EXPECT_GT(dora.step_seconds, plain.step_seconds);
  EXPECT_NE(dora.program("start_magnitudes"), nullptr);
  EXPECT_EQ(plain.program("start_magnitudes"), nullptr);
}

TEST(Techniques, MagnitudesOverCodesAreRefusedOnAGpu) {
  TrainOptions options = fixed_options();
  options.techniques.lora.rank = 4;
  options.techniques.lora.decomposed = true;
  EXPECT_EQ(refusal({{"quantize-weights", "nf4"}}, options), "accepted");
  options.machine.device = "null";
  options.machine.profile = "A100-80GB";
  EXPECT_MENTIONS(refusal({{"quantize-weights", "nf4"}}, options), "DoRA over codes");
  EXPECT_EQ(refusal({}, options), "accepted");
}

TEST(Techniques, ValuesOutOfRangeAreRefused) {
  for (const char* value : {"0", "-1", "off", "two", "", "99999999999999999999", "4x"})
    EXPECT_MENTIONS(refusal({{"micro-batch", value}}), "micro-batch");
  for (const char* value : {"0", "-64", "some"}) EXPECT_MENTIONS(refusal({{"chunked-loss", value}}), "chunked-loss");
  EXPECT_MENTIONS(refusal({{"recompute", "most"}}), "block-input");
  EXPECT_MENTIONS(refusal({{"flash-attention", "off"}}), "flash-attention");
}

TEST(Techniques, ContradictionsAreRefused) {
  EXPECT_MENTIONS(refusal({{"fused-optimizer", "on"}}), "--max-grad-norm 0");
  TrainOptions options = fixed_options();
  options.techniques.max_grad_norm = 0;
  options.data.micro_batch_size = 2;
  EXPECT_MENTIONS(refusal({{"fused-optimizer", "on"}}, options), "one micro-batch per step, not 8 of 2");
  EXPECT_MENTIONS(refusal({{"bf16-mixed", "on"}}), "--precision");
  options.data.micro_batch_size = 0;
  EXPECT_MENTIONS(refusal({{"fused-optimizer", "on"}, {"micro-batch", "2"}}, options),
                  "one micro-batch per step, not 8 of 2");
}

// fp8 needs a GPU with fp8 tensor cores and bf16 operands; the shipped profiles state their GPU's capability.
TEST(Techniques, Fp8IsRefusedWhereItHasNoProducts) {
  TrainOptions options = fixed_options();
  options.techniques.precision = "bf16-mixed";
  options.techniques.matmul_precision = "fp8";
  EXPECT_MENTIONS(refusal({}, options), "a CPU has no products in fp8");
  options.machine.device = "null";
  options.machine.profile = "A100-80GB";
  EXPECT_MENTIONS(refusal({}, options), "compute capability 8.0 has no products in fp8");
  options.machine.profile = "H100-80GB";
  EXPECT_EQ(refusal({}, options), "accepted");
  options.techniques.precision = "32-true";
  EXPECT_MENTIONS(refusal({}, options), "--precision bf16-mixed --matmul-precision fp8");
}

// Some of the products, by their names; nothing is stored in other types, so the weights take what they did.
TEST(Techniques, Int8MixedNamesItsProducts) {
  const auto chosen = [](const char* setting) {
    return std::string(choices_with({{"quantize-training", setting}}).text("quantize_training"));
  };
  for (const char* setting : {"int8", "int8-mixed", "int8-mixed:output", "int8-mixed:output+grad_input"})
    EXPECT_EQ(chosen(setting), setting);
  EXPECT_EQ(chosen("int8-mixed:grad_weight+output"), "int8-mixed:output+grad_weight");
  EXPECT_EQ(chosen("int8-mixed:grad_weight+grad_input+output"), "int8-mixed");
  for (const char* setting : {"int8-mixed:", "int8-mixed:all", "int8-mixed:output+", "int8-mixed:output+output"})
    EXPECT_MENTIONS(refusal({{"quantize-training", setting}}), "int8-mixed:output+grad_input+grad_weight");
  EXPECT_MENTIONS(refusal({{"quantize-training", "int8-mix"}}), "int8-mixed");
  TrainOptions options = fixed_options();
  options.techniques.lora.rank = 4;
  EXPECT_MENTIONS(refusal({{"quantize-training", "int8-mixed"}}, options), "adapters");
  options = fixed_options();
  options.machine.device = "null";
  options.machine.profile = "A100-80GB";
  EXPECT_MENTIONS(refusal({{"quantize-training", "int8-mixed"}}, options), "--precision bf16-mixed");
}

TEST(Techniques, ActivationsInEightBitsAreForModelsThatAreNotTrained) {
  EXPECT_MENTIONS(refusal({{"quantize-activations", "int8"}}), "acts on evaluate, generate and serve");
  EXPECT_MENTIONS(refusal({{"quantize-activations", "int4"}}), "int8");
  EXPECT_MENTIONS(refusal({{"quantize-activations", "int8"}, {"qat", "int8"}}), "name one of the two");
  TrainOptions options = fixed_options();
  options.machine.device = "null";
  options.machine.profile = "A100-80GB";
  EXPECT_MENTIONS(refusal({{"quantize-activations", "int8"}}, options), "no kernels for a GPU");
}

TEST(Techniques, TrainedCodesNeedAnOptimizerOfSingleElements) {
  TrainOptions options = fixed_options();
  options.optimizer.optim = "sophia";
  const std::string text = refusal({{"quantize-training", "int8"}}, options);
  EXPECT_MENTIONS(text, "--technique quantize-training=int8 needs an optimizer that updates element by element");
  EXPECT_MENTIONS(text, "not sophia | --optim with one of these: ");
  EXPECT_MENTIONS(text, "adamw");
  EXPECT_EQ(text.find("sophia"), text.rfind("sophia")) << "it is not its own remedy: " << text;
  EXPECT_EQ(refusal({{"quantize-training", "int8-mixed"}}, options), "accepted");
}

// A model with experts whose config asks for the loss that balances them, or does not.
ModelFiles expert_model(bool balances) {
  const Json config{{"model_type", "mixtral"},
                    {"vocab_size", 1009},
                    {"hidden_size", 96},
                    {"intermediate_size", 64},
                    {"num_hidden_layers", 2},
                    {"num_attention_heads", 6},
                    {"num_key_value_heads", 2},
                    {"max_position_embeddings", 128},
                    {"rms_norm_eps", 1e-5},
                    {"num_local_experts", 4},
                    {"num_experts_per_tok", 2},
                    {"sliding_window", nullptr},
                    {"output_router_logits", balances}};
  ModelFiles model;
  model.config = HfConfig::parse(config.dump(), "experts/config.json");
  model.spec = read_model_spec(model.config);
  return model;
}

TEST(Techniques, NoCurvatureIsEstimatedOfALossThatBalancesExperts) {
  TrainOptions options = fixed_options();
  options.optimizer.optim = "sophia";
  const std::string text = refusal({}, options, expert_model(true));
  EXPECT_MENTIONS(text, "--optim sophia estimates the curvature");
  EXPECT_MENTIONS(text, "balances its experts | \"output_router_logits\": false in config.json, or another optimizer");
  EXPECT_EQ(refusal({}, options, expert_model(false)), "accepted");
  options.optimizer.optim = "adamw";
  EXPECT_EQ(refusal({}, options, expert_model(true)), "accepted");
}

TEST(Techniques, KeepLevelsReadWell) {
  EXPECT_EQ(describe_keep({}), "keep-all");
  EXPECT_EQ(describe_keep(keep_setting(3, 2, Keep::block_input, Keep::all)), "2 x block-input, 1 x keep-all");
  EXPECT_EQ(keep_setting(3, 0, Keep::block_input, Keep::no_cheap), keep_setting(3, 3, Keep::no_cheap, Keep::all));
  const std::vector<Keep> kept{Keep::no_attention, Keep::no_cheap};
  EXPECT_EQ(keeps(keep_setting(2, 1, kept[0], kept[1])), kept);
}

TEST(Techniques, KeepSettingsAreReadAsTheyAreWritten) {
  const std::vector<uint8_t> one(6, 0), two{0, 0, 1, 0, 0, 1};
  for (const char* text :
       {"6 x keep-all", "1 x block-input, 2 x keep-attention, 2 x drop-cheap+projections+mlp, 1 x drop-elementwise"}) {
    ASSERT_TRUE(parse_keeps(text, one)) << text;
    EXPECT_EQ(describe_keep(*parse_keeps(text, one)), text);
  }
  const char* const kinds = "3 x block-input, 1 x drop-cheap; 1 x drop-norms, 1 x keep-all";
  ASSERT_TRUE(parse_keeps(kinds, two));
  EXPECT_EQ(describe_keep(*parse_keeps(kinds, two)), kinds);
  EXPECT_EQ(keeps(*parse_keeps(kinds, two), two), (std::vector{Keep::block_input, Keep::block_input, Keep::norms,
                                                               Keep::block_input, Keep::no_cheap, Keep::all}));
  EXPECT_EQ(parse_keeps("on", one), parse_keeps("6 x block-input", one));
  for (const char* text :
       {"", "5 x keep-all", "7 x keep-all", "6 x", "6xkeep-all", "6 x drop-most", "drop-", "drop-cheap+",
        "-1 x keep-all, 7 x keep-all", "6 x keep-all,, ", "4 x keep-all; 2 x keep-all",
        "1 x keep-all, 1 x drop-cheap, 1 x keep-all, 1 x drop-cheap, 2 x keep-all"})
    EXPECT_FALSE(parse_keeps(text, one)) << text;
  EXPECT_FALSE(parse_keeps("3 x keep-all; 3 x keep-all", two));
}

TEST(Techniques, CompressedActivationsTakeLess) {
  TrainOptions options = fixed_options();
  options.techniques.pins = {{"recompute", "off"}, {"micro-batch", "8"}, {"chunked-loss", "64"}};
  const Plan plain = plan(options, small_model()).plan;
  options.techniques.pins["compress-activations"] = "int8";
  const Plan coded = plan(options, small_model()).plan;
  EXPECT_LT(coded.breakdown.activations, plain.breakdown.activations / 2);
  EXPECT_LT(coded.peak_bytes, plain.peak_bytes);
  EXPECT_GT(coded.step_seconds, plain.step_seconds);
  EXPECT_EQ(coded.choices.text("compress_activations"), "int8");
  EXPECT_MENTIONS(refusal({{"compress-activations", "int4"}}), "int8");
}

// Only if the user allows it, and only if it helps.
TEST(Techniques, CompressionIsTakenWhereAllowed) {
  TrainOptions options = fixed_options();
  const Plan plenty = plan(options, small_model()).plan;
  int64_t taken = 0;
  for (int64_t i = 0; i <= 8; ++i) {
    options.machine.memory = plenty.minimum_bytes + (plenty.peak_bytes - plenty.minimum_bytes) * i / 8;
    options.techniques.allow = {};
    const Plan without = plan(options, small_model()).plan;
    EXPECT_EQ(without.choices.pins.at("compress-activations"), "off");
    options.techniques.allow = {"compress-activations"};
    const Plan allowed = plan(options, small_model()).plan;
    EXPECT_LE(allowed.step_seconds, without.step_seconds);
    taken += allowed.choices.pins.at("compress-activations") == "int8" ? 1 : 0;
    if (i == 8) {
      EXPECT_EQ(allowed.choices.pins.at("compress-activations"), "off");
    }
  }
  EXPECT_GT(taken, 0);
}

// What is kept is rounded, so with fixed arithmetic the budget decides neither what is kept nor whether it is rounded.
TEST(Techniques, CompressionIsTheSameForEveryBudgetIfArithmeticIsFixed) {
  TrainOptions options = fixed_options();
  options.techniques.arithmetic = "fixed";
  for (const bool named : {true, false}) {
    options.techniques.pins.erase("compress-activations");
    options.techniques.allow = {"lossy"};
    if (named) options.techniques.pins["compress-activations"] = "int8";
    options.machine.memory = int64_t{1} << 40;
    const Plan plenty = plan(options, small_model()).plan;
    options.machine.memory = plenty.minimum_bytes;
    const Plan least = plan(options, small_model()).plan;
    for (const Plan* const one : {&plenty, &least})
      EXPECT_EQ(one->choices.pins.at("compress-activations"), named ? "int8" : "off");
    if (named) {
      EXPECT_EQ(plenty.choices.text("recompute"), least.choices.text("recompute"));
      EXPECT_EQ(plenty.choices.integer("recompute_segments"), least.choices.integer("recompute_segments"));
    }
  }
}

TEST(Techniques, KeepSettingsOfManyLayersAreInUnits) {
  const std::vector<uint8_t> layers(10000, 0);
  const char* const text = "2500 x block-input, 7500 x drop-cheap";
  ASSERT_TRUE(parse_keeps(text, layers));
  EXPECT_EQ(describe_keep(*parse_keeps(text, layers)), text);
  EXPECT_FALSE(parse_keeps("2501 x block-input, 7499 x drop-cheap", layers));
}

}  // namespace
}  // namespace headroom::test
