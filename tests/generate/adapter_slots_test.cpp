// Adapters in the slots of a server's steps: a row's logits are bitwise those of its own adapter, whatever other rows
// there are, and close to those of `generate` with the adapter; files that do not fit are refused.
#include <gtest/gtest.h>

#include <fstream>

#include "../formats/expect_error.h"
#include "../models/tiny_families.h"
#include "base/counter_random.h"
#include "engine/serving.h"
#include "formats/safetensors_writer.h"
#include "planner/techniques/lora.h"
#include "small_server.h"
#include "tiny_generation.h"
#include "weights/adapter.h"
#include "weights/adapter_files.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

ServingOptions with_slots(int64_t count, int64_t rank) {
  ServingOptions serving = small_sizes();
  if (count > 0) serving.lora.max_loras = count, serving.lora.max_rank = rank;
  return serving;
}

struct WrittenTensor {
  std::string name;
  std::vector<int64_t> shape;
};

void write_config(const fs::path& directory, int64_t rank, const std::string& more = {}) {
  std::ofstream(directory / "adapter_config.json")
      << fmt::format(R"({{"peft_type": "LORA", "r": {}, "lora_alpha": {}{}}})", rank, 2 * rank, more);
}

// An adapter of random numbers, in PEFT's format.
void write_adapter(const fs::path& directory, int64_t rank, const std::vector<WrittenTensor>& tensors, uint64_t seed) {
  fs::create_directories(directory);
  write_config(directory, rank);
  SafetensorsWriter writer(directory / "adapter_model.safetensors");
  for (const WrittenTensor& tensor : tensors) writer.declare(tensor.name, StoredType::f32, tensor.shape);
  for (const WrittenTensor& tensor : tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
    for (float& value : values) value = static_cast<float>(unit_interval(mix64(++seed)) - 0.5);
    writer.write(tensor.name, std::as_bytes(std::span(values)));
  }
  writer.finish();
}

// A and B of `rank` for each product of the plan that has slots.
std::vector<WrittenTensor> all_matrices(const ServingPlan& plan, const ModelSpec& spec, int64_t rank) {
  std::vector<WrittenTensor> tensors;
  for (const WeightInfo& weight : model_weights(spec)) {
    const PersistentTensor* a = plan.plan.tensor(slot_name(weight.name, 'A'));
    const PersistentTensor* b = plan.plan.tensor(slot_name(weight.name, 'B'));
    if (!a) continue;
    tensors.push_back({lora_name(weight.name, 'A'), {rank, a->place.type.dims[2]}});
    tensors.push_back({lora_name(weight.name, 'B'), {b->place.type.dims[2], rank}});
  }
  return tensors;
}

// Tokens, the blocks that hold them and the slot of their adapter.
struct Held {
  std::vector<int32_t> tokens, blocks;
  int32_t adapter = -1;
};

// Logits of the last token of each, read `chunk` tokens at a time, all in the same steps.
std::vector<std::vector<float>> last_logits(StepRunner& runner, const std::vector<Held>& all, size_t chunk) {
  std::vector<std::vector<float>> out(all.size());
  const auto vocab = static_cast<size_t>(runner.limits().vocab);
  for (size_t done = 0;; done += chunk) {
    Step step;
    std::vector<size_t> whose;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto table = static_cast<int32_t>(step.tables.size());
      step.tables.emplace_back(all[i].blocks);
      for (size_t at = done; at < std::min(done + chunk, all[i].tokens.size()); ++at) {
        if (at + 1 == all[i].tokens.size())
          step.wanted.push_back(static_cast<int32_t>(step.rows.size())), whose.push_back(i);
        step.rows.push_back({all[i].tokens[at], static_cast<int32_t>(at), table, all[i].adapter});
      }
    }
    if (step.rows.empty()) return out;
    const std::span<const float> logits = runner.run(step);
    for (size_t row = 0; row < whose.size(); ++row) {
      const std::span<const float> of = logits.subspan(row * vocab, vocab);
      out[whose[row]].assign(of.begin(), of.end());
    }
  }
}

std::vector<TinyModel> served_families() {
  std::vector<TinyModel> models;
  for (const Family& family : families()) {
    TinyModel model{std::string(family.architecture), tiny_config(family)};
    model.config["vocab_size"] = 258;
    model.config["initializer_range"] = 0.2;
    const ModelSpec spec = read_model_spec(HfConfig::parse(model.config.dump(), "c.json"));
    if (spec.objective == Objective::language) models.push_back(std::move(model));
  }
  return models;
}

class ServedAdapters : public testing::TestWithParam<TinyModel> {
 protected:
  void SetUp() override { write_tiny_model(directory_, GetParam().config.dump().c_str()); }

  ServedModel serve(int64_t slots, const std::string& precision = "32-true") const {
    InferenceOptions options = served_options(directory_ / "model");
    options.techniques.precision = precision;
    return ServedModel(options, plan_serving(options, with_slots(slots, 6)));
  }
  // Adapters of rank 3 and of the slots' rank.
  void load(ServedModel& model) const {
    write_adapter(directory_ / "three", 3, all_matrices(model.plan(), model.files().spec, 3), 1);
    write_adapter(directory_ / "six", 6, all_matrices(model.plan(), model.files().spec, 6), 5'000'000);
    model.load_adapter(0, directory_ / "three");
    model.load_adapter(1, directory_ / "six");
  }
  void expect_mixed_as_alone(ServedModel& model) const {
    load(model);
    const std::vector<Held> all{{tiny_prompt(13), {0, 1, 2, 3}, 0},
                                {tiny_prompt(13), {4, 5, 6, 7}, -1},
                                {tiny_prompt(13), {8, 9, 10, 11}, 1},
                                {tiny_prompt(7), {12, 13}, 0}};
    for (const size_t chunk : {size_t{1}, size_t{5}}) {
      const auto mixed = last_logits(model.runner(), all, chunk);
      for (size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(mixed[i], last_logits(model.runner(), {all[i]}, 1)[0]) << "sequence " << i << ", chunks of " << chunk;
      EXPECT_NE(mixed[0], mixed[1]);
      EXPECT_NE(mixed[0], mixed[2]);
      EXPECT_NE(mixed[1], mixed[2]);
    }
  }

  TemporaryDirectory directory_;
};

TEST_P(ServedAdapters, InOneStepGiveWhatEachGivesAlone) {
  ServedModel model = serve(2);
  expect_mixed_as_alone(model);
  EXPECT_LE(model.arena_high_water(), model.plan().plan.arena_bytes);
}

TEST_P(ServedAdapters, InOneStepGiveWhatEachGivesAloneInBf16) {
  ServedModel model = serve(2, "bf16-true");
  expect_mixed_as_alone(model);
}

TEST_P(ServedAdapters, AreThoseOfAGenerationWithTheAdapter) {
  ServedModel model = serve(2);
  load(model);
  for (const auto& [slot, name] : {std::pair{0, "three"}, std::pair{1, "six"}}) {
    const fs::path adapter = directory_ / name;
    const LoraOptions lora = lora_options(open_adapter(adapter), model.files().spec);
    TinyGeneration generation(directory_ / "model", 40, 1,
                              [&](PlanRequest& request) { request.techniques["lora"] = lora_pin(lora); });
    load_adapter(generation.executor(), lora, adapter);
    const std::vector<int32_t> ids = generation.run(tiny_prompt(9), {{0, 1, 0, 1}, 2, {}});
    Held held{tiny_prompt(9), {3, 1, 2}, slot};
    held.tokens.push_back(ids[0]);
    const std::vector<float> expected = generation.logits(), found = last_logits(model.runner(), {held}, 4)[0];
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-3 + 1e-3 * std::abs(expected[i]));
  }
}

TEST_P(ServedAdapters, RowsWithoutAnAdapterAreTheBase) {
  ServedModel with = serve(2), without = serve(0);
  load(with);
  const Held held{tiny_prompt(13), {5, 2, 7, 0}};
  const std::vector<float> found = last_logits(with.runner(), {held}, 4)[0],
                           expected = last_logits(without.runner(), {held}, 4)[0];
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Families, ServedAdapters, testing::ValuesIn(served_families()),
                         [](const auto& info) { return info.param.name; });

class AdapterSlotsTest : public testing::Test {
 protected:
  void SetUp() override { write_tiny_model(directory_); }
  ServingPlan plan(const ServingOptions& serving) const {
    return plan_serving(served_options(directory_ / "model"), serving);
  }
  static int64_t region(const ServingPlan& plan, const std::string& name) {
    for (const ServingRegion& region : plan.regions)
      if (region.name == name) return region.bytes;
    return 0;
  }
  ModelSpec spec() const { return open_model(directory_ / "model").spec; }

  TemporaryDirectory directory_;
};

// For the tiny model: hidden 32, intermediate 64, 4 heads of 8 and 2 of keys, 3 layers.
constexpr int64_t kSums = 3 * ((32 + 32) + 2 * (32 + 16) + (32 + 32) + 2 * (32 + 64) + (64 + 32));

TEST_F(AdapterSlotsTest, TheirRegionIsCountTimesRankTimesSums) {
  for (const auto& [count, rank] : {std::pair<int64_t, int64_t>{1, 16}, {3, 5}}) {
    const ServingPlan with = plan(with_slots(count, rank));
    EXPECT_EQ(region(with, "lora_slots"), 4 * (count * rank * kSums + count));
    EXPECT_EQ(with.limits.adapters, count);
    int64_t sum = 0;
    for (const ServingRegion& region : with.regions) sum += region.bytes;
    EXPECT_EQ(sum, with.plan.peak_bytes);
  }
  EXPECT_EQ(region(plan(with_slots(0, 0)), "lora_slots"), 0);
  ServingOptions some = with_slots(2, 4);
  some.lora.targets = {"q_proj", "layers.1.mlp.down_proj"};
  EXPECT_EQ(region(plan(some), "lora_slots"), 4 * (2 * 4 * (3 * 64 + 96) + 2));
}

TEST_F(AdapterSlotsTest, AreAsWideAsTheAdaptersThatAreNamed) {
  const std::string layer = "model.layers.0.self_attn.";
  write_adapter(
      directory_ / "q", 2,
      {{lora_name(layer + "q_proj.weight", 'A'), {2, 32}}, {lora_name(layer + "q_proj.weight", 'B'), {32, 2}}}, 1);
  write_adapter(
      directory_ / "k", 5,
      {{lora_name(layer + "k_proj.weight", 'A'), {5, 32}}, {lora_name(layer + "k_proj.weight", 'B'), {16, 5}}}, 2);
  ServingOptions serving = with_slots(0, 0);
  serving.lora.adapters = {{"q", directory_ / "q"}, {"k", directory_ / "k"}};
  const ServingPlan planned = plan(serving);
  EXPECT_EQ(planned.lora.count, 2);
  EXPECT_EQ(planned.lora.rank, 5);
  EXPECT_EQ(region(planned, "lora_slots"), 4 * (2 * 5 * (64 + 48) + 2));
  serving.lora.max_rank = 4;
  expect_error(ErrorKind::usage, "has rank 5, the slots hold 4", [&] { plan(serving); });
  serving.lora.max_rank.reset();
  serving.lora.max_loras = 1;
  expect_error(ErrorKind::usage, "names 2 adapters, --max-loras 1", [&] { plan(serving); });
  serving.lora.max_loras.reset();
  serving.lora.targets = {"q_proj"};
  expect_error(ErrorKind::usage, "k_proj, which has no slots", [&] { plan(serving); });
}

TEST_F(AdapterSlotsTest, NumbersOutOfRangeAreRefused) {
  const auto refuse = [&](const char* what, const auto& change) {
    ServingOptions serving = with_slots(1, 4);
    change(serving);
    expect_error(ErrorKind::usage, what, [&] { plan(serving); });
  };
  refuse("--max-loras 0", [](ServingOptions& s) { s.lora.max_loras = 0; });
  refuse("--max-loras 1025", [](ServingOptions& s) { s.lora.max_loras = 1025; });
  refuse("--max-lora-rank 513", [](ServingOptions& s) { s.lora.max_rank = 513; });
  refuse("--lora-target-modules lm_head", [](ServingOptions& s) { s.lora.targets = {"lm_head"}; });
}

TEST_F(AdapterSlotsTest, FilesThatDoNotFitAreRefusedAndChangeNothing) {
  ServingOptions serving = with_slots(1, 4);
  serving.lora.targets = {"q_proj"};
  ServedModel model(served_options(directory_ / "model"), plan(serving));
  const std::string a = lora_name("model.layers.0.self_attn.q_proj.weight", 'A'),
                    b = lora_name("model.layers.0.self_attn.q_proj.weight", 'B');
  const fs::path good = directory_ / "good", bad = directory_ / "bad";
  write_adapter(good, 4, {{a, {4, 32}}, {b, {32, 4}}}, 1);
  model.load_adapter(0, good);
  const Held held{tiny_prompt(9), {0, 1, 2}, 0};
  const std::vector<float> before = last_logits(model.runner(), {held}, 4)[0];
  const auto refuse = [&](ErrorKind kind, const char* what) {
    expect_error(kind, what, [&] { model.load_adapter(0, bad); });
    EXPECT_EQ(last_logits(model.runner(), {held}, 4)[0], before) << what;
  };
  refuse(ErrorKind::usage, "has no file adapter_config.json");
  write_adapter(bad, 8, {{a, {8, 32}}, {b, {32, 8}}}, 2);
  refuse(ErrorKind::usage, "has rank 8, the slots hold 4");
  write_adapter(bad, 4, {{a, {4, 31}}, {b, {32, 4}}}, 2);
  refuse(ErrorKind::format, "has shape [4, 31], the model asks for [4, 32]");
  write_adapter(bad, 4, {{a, {4, 32}}}, 2);
  refuse(ErrorKind::format, "is missing");
  const std::string k = "model.layers.0.self_attn.k_proj.weight";
  write_adapter(bad, 4, {{lora_name(k, 'A'), {4, 32}}, {lora_name(k, 'B'), {16, 4}}}, 2);
  refuse(ErrorKind::usage, "belongs to a module without slots");
  write_adapter(bad, 4, {{a, {4, 32}}, {b, {32, 4}}}, 2);
  fs::resize_file(bad / "adapter_model.safetensors", fs::file_size(bad / "adapter_model.safetensors") - 5);
  refuse(ErrorKind::format, "adapter_model.safetensors");
  write_adapter(bad, 4, {{a, {4, 32}}, {b, {32, 4}}}, 2);
  write_config(bad, 4, R"(, "use_dora": true)");
  refuse(ErrorKind::usage, "use_dora");
  write_config(bad, 4, ", \"more\": \"" + std::string(70'000, 'x') + "\"");
  refuse(ErrorKind::format, "adapter_config.json");
  std::ofstream(bad / "adapter_config.json") << "[[[";
  refuse(ErrorKind::format, "adapter_config.json");
}

TEST_F(AdapterSlotsTest, StandBesideCodesOfWeights) {
  InferenceOptions options = served_options(directory_ / "model");
  options.techniques.pins["quantize-weights"] = "int8";
  ServedModel model(options, plan_serving(options, with_slots(1, 4)));
  write_adapter(directory_ / "all", 4, all_matrices(model.plan(), spec(), 4), 3);
  model.load_adapter(0, directory_ / "all");
  const std::vector<Held> all{{tiny_prompt(9), {0, 1, 2}, 0}, {tiny_prompt(9), {3, 4, 5}, -1}};
  const auto mixed = last_logits(model.runner(), all, 5);
  EXPECT_NE(mixed[0], mixed[1]);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(mixed[i], last_logits(model.runner(), {all[i]}, 1)[0]);
}

TEST_F(AdapterSlotsTest, DoNotGoWithOneAdapterForAll) {
  const std::string a = lora_name("model.layers.0.self_attn.q_proj.weight", 'A'),
                    b = lora_name("model.layers.0.self_attn.q_proj.weight", 'B');
  write_adapter(directory_ / "good", 4, {{a, {4, 32}}, {b, {32, 4}}}, 1);
  InferenceOptions options = served_options(directory_ / "model");
  options.adapter = directory_ / "good";
  expect_error(ErrorKind::usage, "--adapter cannot be combined", [&] { plan_serving(options, with_slots(1, 4)); });
}

}  // namespace
}  // namespace headroom
