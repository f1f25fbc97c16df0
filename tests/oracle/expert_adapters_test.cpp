// Adapters of experts and routers: the meaning of targets, reading and writing PEFT's files, and combinations with
// techniques.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "scratch_folder.h"
#include "training_run.h"
#include "weights/adapter.h"
#include "weights/adapter_files.h"

namespace headroom::test {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_of(const Json& list) {
  std::set<std::string> names;
  for (const Json& name : list) names.insert(name.get<std::string>());
  return names;
}

class ExpertAdapters : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    options_.techniques.lora = lora_options(open_adapter(folder_), golden_.model.spec);
    options_.schedule.learning_rate = 1e-2;
  }

  // Names and shapes in the file of a fresh adapter with these targets.
  std::map<std::string, std::vector<int64_t>> stored(const std::vector<std::string>& targets) {
    const ScratchFolder scratch("expert-targets");
    TrainOptions options = options_;
    options.techniques.lora.targets = targets;
    TrainingRun(golden_, options).save_adapter(scratch.path);
    config_ = read_json(scratch.path / "adapter_config.json");
    std::map<std::string, std::vector<int64_t>> shapes;
    const SafetensorsFile file = SafetensorsFile::open(scratch.path / "adapter_model.safetensors");
    for (const auto& [name, tensor] : file.tensors()) shapes[name] = tensor.shape;
    return shapes;
  }

  std::string refusal(const std::vector<std::string>& targets) {
    TrainOptions options = options_;
    options.techniques.lora.targets = targets;
    try {
      TrainingRun run(golden_, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what()) + " | " + error.remedy();
    }
    return "accepted";
  }

  std::vector<double> losses(const TrainOptions& options) {
    TrainingRun run(golden_, options, folder_);
    std::vector<double> found;
    for (int step = 0; step < 3; ++step) found.push_back(run.step().loss);
    return found;
  }

  bool mixtral() const { return GetParam() == std::string("mixtral"); }
  std::vector<std::string> halves() const {
    return mixtral() ? std::vector<std::string>{"w1", "w3"} : std::vector<std::string>{"gate_proj", "up_proj"};
  }

  GoldenCase golden_ = GoldenCase::open(GetParam());
  fs::path folder_ = golden_.folder / "lora";
  TrainOptions options_ = plain_options(golden_);
  Json config_;
  const int64_t experts_ = golden_.model.spec.experts.count, hidden_ = golden_.model.spec.hidden,
                width_ = golden_.model.spec.experts.intermediate;
  const std::string module_ = "base_model.model.model.layers.0.mlp.experts";
};

TEST_P(ExpertAdapters, FilesOfPeftComeBackBitForBit) {
  const ScratchFolder scratch("expert-adapters");
  TrainingRun(golden_, options_, folder_).save_adapter(scratch.path);
  const SafetensorsFile theirs = SafetensorsFile::open(folder_ / "adapter_model.safetensors"),
                        ours = SafetensorsFile::open(scratch.path / "adapter_model.safetensors");
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const auto& [name, tensor] : theirs.tensors()) {
    ASSERT_NE(ours.find(name), nullptr) << name;
    EXPECT_EQ(ours.find(name)->shape, tensor.shape) << name;
    EXPECT_EQ(read_floats(ours, name), read_floats(theirs, name)) << name;
  }
  const Json before = read_json(folder_ / "adapter_config.json"),
             after = read_json(scratch.path / "adapter_config.json");
  EXPECT_EQ(names_of(after.at("target_modules")), names_of(before.at("target_modules")));
  EXPECT_EQ(after.value("rank_pattern", Json::object()), before.at("rank_pattern"));
  EXPECT_EQ(after.value("alpha_pattern", Json::object()), before.at("alpha_pattern"));
  EXPECT_EQ(after.at("r"), before.at("r"));
  // PEFT matches the end of a parameter's name.
  const std::set<std::string> parameters = names_of(after.at("target_parameters"));
  EXPECT_EQ(parameters.size(), before.at("target_parameters").size());
  for (const Json& name : before.at("target_parameters"))
    EXPECT_TRUE(std::any_of(parameters.begin(), parameters.end(), [&](const std::string& own) {
      return own.ends_with(name.get<std::string>());
    })) << name;
}

TEST_P(ExpertAdapters, AllLinearIsAttentionExpertsAndRouters) {
  const int64_t r = options_.techniques.lora.rank;
  const auto shapes = stored({"all-linear"});
  const std::vector<int64_t> inner_a{experts_ * 2 * r, hidden_}, inner_b{2 * width_, 2 * r * experts_},
      a{experts_ * r, width_}, b{hidden_, r * experts_}, router{experts_, r};
  EXPECT_EQ(shapes.at(module_ + ".base_layer.lora_A.weight"), inner_a);
  EXPECT_EQ(shapes.at(module_ + ".base_layer.lora_B.weight"), inner_b);
  EXPECT_EQ(shapes.at(module_ + ".lora_A.weight"), a);
  EXPECT_EQ(shapes.at(module_ + ".lora_B.weight"), b);
  EXPECT_EQ(shapes.at("base_model.model.model.layers.0.mlp.gate.lora_B.weight"), router);
  int64_t layers = 0;
  for (int64_t layer = 0; layer < golden_.model.spec.layers; ++layer) layers += golden_.model.spec.has_experts(layer);
  // No other adapter of an MLP.
  EXPECT_EQ(static_cast<int64_t>(shapes.size()), 2 * (4 * golden_.model.spec.layers + 3 * layers));
  EXPECT_EQ(config_.at("target_modules"), Json({"k_proj", "o_proj", "q_proj", "v_proj"}));
  EXPECT_EQ(config_.at("target_parameters"),
            Json({"mlp.experts.down_proj", "mlp.experts.gate_up_proj", "mlp.gate.weight"}));
  EXPECT_EQ(config_.at("rank_pattern"), Json({{".*\\.gate_up_proj", 2 * r}}));
}

TEST_P(ExpertAdapters, ParametersHaveTheRankAndModulesTwice) {
  const int64_t r = options_.techniques.lora.rank;
  const std::vector<int64_t> once{experts_ * r, hidden_}, twice{experts_ * 2 * r, hidden_}, down{experts_ * r, width_};
  const std::string a = module_ + ".lora_A.weight";
  for (const char* name : {"gate_up_proj", "experts.gate_up_proj", "mlp.experts.gate_up_proj"}) {
    EXPECT_EQ(stored({name}).at(a), once) << name;
    EXPECT_FALSE(config_.contains("rank_pattern")) << name;
    EXPECT_EQ(config_.at("target_modules"), Json::array());
    EXPECT_EQ(config_.at("target_parameters"), Json({"mlp.experts.gate_up_proj"}));
  }
  EXPECT_EQ(stored(halves()).at(a), twice);
  EXPECT_EQ(stored({mixtral() ? "w2" : "down_proj"}).at(a), down);
  EXPECT_EQ(stored({"experts.down_proj"}).at(a), down);
  EXPECT_EQ(stored({"layers.0.*.experts.down_proj"}).size(), 2u);
  const bool one = golden_.model.spec.layers - (mixtral() ? 0 : 1) == 1;
  EXPECT_EQ(config_.at("target_parameters"),
            Json({one ? "mlp.experts.down_proj" : "model.layers.0.mlp.experts.down_proj"}));
}

TEST_P(ExpertAdapters, WhatCannotBeIsRefusedByName) {
  const std::string half = refusal({halves()[0], "q_proj"});
  EXPECT_NE(half.find("without the other half"), std::string::npos) << half;
  EXPECT_NE(half.find("experts.gate_up_proj"), std::string::npos) << half;
  EXPECT_NE(refusal({"experts.0"}).find("matches no linear layer"), std::string::npos);
  options_.techniques.lora.dropout = 0.1;
  for (const char* target : {"experts", "gate", "all-linear"})
    EXPECT_NE(refusal({target}).find("--lora-dropout 0.1 before"), std::string::npos) << target;
  EXPECT_EQ(refusal({"q_proj"}), "accepted");
  options_.techniques.lora.dropout = 0;
  options_.techniques.lora.modules_to_save = {"experts"};
  EXPECT_NE(refusal({"q_proj"}).find("matches experts"), std::string::npos);
}

TEST_P(ExpertAdapters, AFreshOneChangesNothing) {
  TrainOptions plain = options_;
  plain.techniques.lora = LoraOptions{};
  options_.techniques.lora.targets = {"all-linear"};
  EXPECT_EQ(TrainingRun(golden_, options_).step().loss, TrainingRun(golden_, plain).step().loss);
}

TEST_P(ExpertAdapters, MicroBatchesHaveTheSameLosses) {
  const std::vector<double> whole = losses(options_);
  options_.data.micro_batch_size = 1;
  const std::vector<double> cut = losses(options_);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(cut[i], whole[i], 1e-5 * whole[i]);
}

TEST_P(ExpertAdapters, RecomputationChangesNoBit) {
  for (const char* precision : {"32-true", "bf16-mixed", "bf16-true"}) {
    options_.techniques.precision = precision;
    options_.techniques.pins = {{"fused-optimizer", "off"}, {"recompute", "off"}, {"chunked-loss", "off"}};
    const std::vector<double> kept = losses(options_);
    options_.techniques.pins["recompute"] = "on";
    EXPECT_EQ(losses(options_), kept) << precision;
  }
}

TEST_P(ExpertAdapters, OverABaseInBf16TheLossIsNear) {
  const double wide = TrainingRun(golden_, options_, folder_).step().loss;
  options_.techniques.precision = "bf16-true";
  EXPECT_NEAR(TrainingRun(golden_, options_, folder_).step().loss, wide, 0.03 * wide);
}

INSTANTIATE_TEST_SUITE_P(Cases, ExpertAdapters, testing::Values("mixtral", "qwen3_moe"));

}  // namespace
}  // namespace headroom::test
