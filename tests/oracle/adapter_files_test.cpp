// The contents of an adapter's directory: PEFT's files are accepted, unsupported features are refused by name.
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "formats/safetensors_writer.h"
#include "golden_case.h"
#include "scratch_folder.h"
#include "weights/adapter_files.h"
#include "weights/objective.h"
#include "weights/weights.h"

namespace headroom::test {
namespace {

namespace fs = std::filesystem;

class AdapterDirectory : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("headroom-adapter-{}", ::getpid());
    fs::create_directories(folder_);
    const fs::path golden = fs::path(HEADROOM_SOURCE_DIR) / "tests/oracle/llama_gqa_tied";
    fs::copy_file(golden / "lora/adapter_model.safetensors", folder_ / "adapter_model.safetensors");
    config_ = read_json(golden / "lora/adapter_config.json");
    model_ = open_model(golden / "model");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write() { std::ofstream(folder_ / "adapter_config.json") << config_.dump(); }

  std::string refusal(const char* key, const Json& value) {
    Json changed = config_;
    changed[key] = value;
    std::swap(changed, config_);
    write();
    std::swap(changed, config_);
    try {
      open_adapter(folder_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::format);
      return error.what();
    }
    return "accepted";
  }

  fs::path folder_;
  Json config_;
  ModelFiles model_;
};

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(AdapterDirectory, GivesTheOptionsOfItsTensors) {
  write();
  const AdapterFiles adapter = open_adapter(folder_);
  const LoraOptions options = lora_options(adapter, model_.spec);
  EXPECT_EQ(options.rank, 4);
  EXPECT_EQ(options.alpha, 8);
  EXPECT_EQ(adapter.factor(), 2);
  EXPECT_EQ(static_cast<int64_t>(options.targets.size()), 7 * model_.spec.layers);
  EXPECT_TRUE(options.modules_to_save.empty());
}

TEST_F(AdapterDirectory, RefusesByNameWhatIsNotComputed) {
  EXPECT_MENTIONS(refusal("peft_type", "LOHA"), "peft_type");
  EXPECT_MENTIONS(refusal("lora_bias", true), "lora_bias");
  EXPECT_MENTIONS(refusal("bias", "all"), "biases");
  EXPECT_MENTIONS(refusal("rank_pattern", Json{{"q_proj", 8}}), "rank_pattern");
  EXPECT_MENTIONS(refusal("alpha_pattern", Json{{"q_proj", 8}}), "alpha_pattern");
  EXPECT_MENTIONS(refusal("layer_replication", Json{{0, 1}}), "layer_replication");
  EXPECT_MENTIONS(refusal("r", 0), "r is 0");
  EXPECT_MENTIONS(refusal("r", "four"), "r or lora_alpha");
  EXPECT_MENTIONS(refusal("init_lora_weights", "pissa_niter_4"), "pissa");
  EXPECT_EQ(refusal("init_lora_weights", "gaussian"), "accepted");
  EXPECT_EQ(refusal("lora_dropout", 0.1), "accepted");
}

TEST_F(AdapterDirectory, RefusesTensorsOfAnotherModel) {
  write();
  const AdapterFiles adapter = open_adapter(folder_);
  const ModelFiles other = open_model(fs::path(HEADROOM_SOURCE_DIR) / "tests/oracle/gpt2/model");
  try {
    lora_options(adapter, other.spec);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_MENTIONS(std::string(error.what()), "belongs to no weight");
  }
}

// PEFT loads the embedding and the head as two copies; a file that trained one of them, or both separately, is a
// different model.
TEST(TiedHead, IsAcceptedWhereTheFileHasItTwice) {
  const fs::path golden = fs::path(HEADROOM_SOURCE_DIR) / "tests/oracle/gemma2";
  const ModelFiles model = open_model(golden / "model");
  const SafetensorsFile whole = SafetensorsFile::open(golden / "lora/adapter_model.safetensors");
  const LoraOptions options = lora_options(open_adapter(golden / "lora"), model.spec);
  EXPECT_EQ(options.modules_to_save, std::vector<std::string>{"model.embed_tokens.weight"});

  const std::string head = "base_model.model.lm_head.weight";
  const auto refusal_of = [&](const std::string& left_out, bool changed) {
    const ScratchFolder folder("tied-head");
    fs::copy_file(golden / "lora/adapter_config.json", folder.path / "adapter_config.json");
    SafetensorsWriter writer(folder.path / "adapter_model.safetensors");
    for (const auto& [name, tensor] : whole.tensors())
      if (name != left_out) writer.declare(name, StoredType::f32, tensor.shape);
    for (const auto& [name, tensor] : whole.tensors()) {
      if (name == left_out) continue;
      std::vector<float> values = read_floats(whole, tensor);
      if (changed && name == head) values.back() += 1;
      writer.write(name, std::as_bytes(std::span(values)));
    }
    writer.finish();
    try {
      lora_options(open_adapter(folder.path), model.spec);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal_of("", false), "accepted");
  EXPECT_MENTIONS(refusal_of("", true), "lm_head.weight' differ");
  EXPECT_MENTIONS(refusal_of(head, false), "apart from 'base_model.model.lm_head.weight'");
  EXPECT_MENTIONS(refusal_of("base_model.model.model.embed_tokens.weight", false), "'" + head + "' was trained apart");
}

TEST(TiedHead, WithABiasIsRefused) {
  const ModelFiles model = open_model(fs::path(HEADROOM_SOURCE_DIR) / "tests/oracle/bert_masked/model");
  LoraOptions options;
  options.rank = 4;
  train_head_with_adapters(model.spec, {}, options);
  options.modules_to_save = {"word_embeddings"};
  EXPECT_THROW(train_head_with_adapters(model.spec, {}, options), Error);
}

TEST_F(AdapterDirectory, FindsItsBase) {
  config_["base_model_name_or_path"] = model_.directory.string();
  write();
  EXPECT_TRUE(is_adapter_directory(folder_));
  EXPECT_FALSE(is_adapter_directory(model_.directory));
  EXPECT_TRUE(fs::equivalent(base_of_adapter(folder_), model_.directory));
  config_["base_model_name_or_path"] = "org/model-that-is-nowhere";
  write();
  EXPECT_THROW(base_of_adapter(folder_), Error);
}

}  // namespace
}  // namespace headroom::test
