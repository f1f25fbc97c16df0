// The patched configuration, read again, fits.
#include "doctor/answer/emit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "doctor/answer/answer.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    path_ = fs::temp_directory_path() / ("headroom-emit-" + std::to_string(::getpid()) + "-" +
                                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  fs::path path_;
};

Answer ask(Request request) {
  std::istringstream nothing;
  return answer(request, nothing);
}

Answer ask_config(const std::string& file, const std::string& gpu) {
  Request request;
  request.configs = {file};
  request.gpu = gpu;
  return ask(request);
}

constexpr const char* kAxolotl = R"(base_model: meta-llama/Llama-3.1-8B  # the base
load_in_8bit: false
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 4096
micro_batch_size: 8
gradient_accumulation_steps: 2
num_epochs: 1
optimizer: adamw_torch
bf16: true
flash_attention: true
)";

TEST(Emit, AYamlFileKeepsItsCommentsAndFits) {
  const Folder folder;
  const std::string file = folder.write("lora.yaml", kAxolotl);
  const Answer before = ask_config(file, "a100-40gb");
  ASSERT_FALSE(before.report.diagnosis.fits.value_or(true));
  const Emitted emitted = emit_patch(before.report.diagnosis, *before.config);
  EXPECT_NE(emitted.text.find("# the base"), std::string::npos);
  EXPECT_NE(emitted.diff.find("\n+"), std::string::npos);
  EXPECT_TRUE(emitted.by_hand.empty());
  const Answer after = ask_config(folder.write("fits.yaml", emitted.text), "a100-40gb");
  EXPECT_TRUE(after.report.diagnosis.fits.value_or(false));
  EXPECT_EQ(after.report.incident.estimate->likely_bytes, *before.report.diagnosis.bytes_after);
}

TEST(Emit, ACommandLineIsChangedInPlace) {
  Request request;
  request.command = {"vllm", "serve", "Qwen/Qwen2.5-7B-Instruct", "--max-model-len", "131072"};
  request.gpu = "rtx-4090";
  const Answer before = ask(request);
  ASSERT_FALSE(before.report.diagnosis.smallest_fitting_set.empty());
  const Emitted emitted = emit_patch(before.report.diagnosis, *before.config);
  EXPECT_NE(emitted.text.find("vllm serve Qwen/Qwen2.5-7B-Instruct"), std::string::npos) << emitted.text;
  EXPECT_FALSE(emitted.diff.empty());
}

TEST(Emit, APythonScriptGetsItsArgument) {
  const Folder folder;
  const std::string file = folder.write("train.py", R"(from trl import SFTConfig, SFTTrainer
args = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=16,
    max_length=2048,
    bf16=True,
    gradient_checkpointing=False,
)
trainer = SFTTrainer(model="Qwen/Qwen2.5-1.5B", args=args)
)");
  const Answer before = ask_config(file, "a100-40gb");
  ASSERT_FALSE(before.report.diagnosis.fits.value_or(true));
  const Emitted emitted = emit_patch(before.report.diagnosis, *before.config);
  EXPECT_FALSE(emitted.diff.empty());
  EXPECT_NE(emitted.text.find("trainer = SFTTrainer(model=\"Qwen/Qwen2.5-1.5B\", args=args)"), std::string::npos);
}

TEST(Emit, WithoutAConfigurationThereIsNothingToPatch) { EXPECT_THROW(emit_patch({}, {}), Error); }

// Every published configuration on smaller and smaller devices: if the whole set consists of keys, the patched file
// fits.
TEST(Emit, PatchedPublishedConfigurationsFit) {
  const fs::path root = test::data_file("configs");
  const Folder folder;
  int patched = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string suffix = entry.path().extension();
    if (suffix != ".yaml" && suffix != ".yml" && suffix != ".json") continue;
    for (const char* gpu : {"a100-80gb", "rtx-4090", "t4"}) {
      SCOPED_TRACE(entry.path().string() + " on " + gpu);
      Answer before;
      try {
        before = ask_config(entry.path().string(), gpu);
      } catch (const Error&) {
        break;
      }
      if (!before.report.incident.estimate || before.report.patch.empty() || !before.report.by_hand.empty()) continue;
      // Files that this one refers to are found only next to it.
      if (before.config->sources.size() != 1) continue;
      const Emitted emitted = emit_patch(before.report.diagnosis, *before.config);
      const Answer after = ask_config(folder.write("patched" + suffix, emitted.text), gpu);
      // The set names a file of the system ("deepspeed: ds_z3_config.json") that is not available.
      if (!after.config->notes.empty()) continue;
      const bool proven = !before.report.diagnosis.smallest_fitting_set.empty();
      EXPECT_TRUE(after.report.diagnosis.fits.value_or(!proven)) << emitted.diff << after.report.diagnosis.doubt;
      ++patched;
    }
  }
  EXPECT_GE(patched, 40);
}

}  // namespace
}  // namespace headroom::doctor
