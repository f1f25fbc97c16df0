// An adapter of PEFT merged into its base: the merged model has the loss that PEFT computed with the adapter.
#include "engine/merge.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "scratch_folder.h"
#include "training_run.h"
#include "weights/adapter_files.h"

namespace headroom::test {
namespace {

namespace fs = std::filesystem;

class Merge : public testing::TestWithParam<const char*> {
 protected:
  Merge() : golden_(GoldenCase::open(GetParam())) {
    root_ = fs::temp_directory_path() / fmt::format("headroom-merge-{}-{}", ::getpid(), GetParam());
    fs::create_directories(root_);
    options_ = {golden_.folder / "model", golden_.folder / "lora", root_ / "merged", "float32"};
  }
  ~Merge() override { fs::remove_all(root_); }

  // The same adapter with a changed config.
  void change_config(const std::string& key, const Json& value) {
    fs::create_directories(root_ / "adapter");
    fs::copy_file(golden_.folder / "lora/adapter_model.safetensors", root_ / "adapter/adapter_model.safetensors",
                  fs::copy_options::overwrite_existing);
    Json config = read_json(golden_.folder / "lora/adapter_config.json");
    config[key] = value;
    std::ofstream(root_ / "adapter/adapter_config.json") << config.dump();
    options_.adapter = root_ / "adapter";
  }

  GoldenCase golden_;
  fs::path root_;
  MergeOptions options_;
};

TEST_P(Merge, HasTheLossOfTheAdapter) {
  const double expected = read_json(golden_.folder / "lora/expected.json").at("fp32")[0].at("loss").get<double>();
  merge_adapter(options_);
  golden_.model = open_model(options_.output_dir);
  EXPECT_NEAR(TrainingRun(golden_, plain_options(golden_)).step().loss, expected, 1e-4 * expected);
}

TEST_P(Merge, NarrowsWhenAsked) {
  options_.save_dtype = "bfloat16";
  merge_adapter(options_);
  const SafetensorsFile merged = SafetensorsFile::open(options_.output_dir / "model.safetensors");
  for (const auto& [name, tensor] : merged.tensors()) EXPECT_EQ(tensor.type, StoredType::bf16) << name;
}

TEST_P(Merge, RefusesWhatDoesNotBelongTogether) {
  for (const auto& [key, value] : {std::pair<const char*, Json>{"peft_type", "IA3"},
                                   {"use_dora", true},
                                   {"bias", "all"},
                                   {"r", 99},
                                   {"r", "four"},
                                   {"lora_alpha", nullptr},
                                   {"rank_pattern", Json{{"q", 2}}}}) {
    change_config(key, value);
    EXPECT_THROW(merge_adapter(options_), Error) << key;
    EXPECT_FALSE(fs::exists(options_.output_dir)) << key;
  }
  options_.adapter = golden_.folder;
  EXPECT_THROW(merge_adapter(options_), Error);
}

INSTANTIATE_TEST_SUITE_P(Cases, Merge,
                         testing::Values("llama_gqa_tied", "gpt2", "qwen2_bias", "mixtral", "qwen3_moe", "gemma2"));

// For a rank-stabilised adapter with magnitudes.
TEST(MergeDora, HasTheLossOfTheAdapter) {
  GoldenCase golden = GoldenCase::open("llama_gqa_tied");
  const ScratchFolder scratch("dora");
  const fs::path adapter = golden.folder / "dora";
  const double expected = read_json(adapter / "expected.json").at("loss").get<double>();
  const MergeOptions options{golden.folder / "model", adapter, scratch.path / "merged", "float32"};
  merge_adapter(options);
  golden.model = open_model(options.output_dir);
  EXPECT_NEAR(TrainingRun(golden, plain_options(golden)).step().loss, expected, 1e-5 * expected);
}

}  // namespace
}  // namespace headroom::test
