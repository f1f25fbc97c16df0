// Logits of every position by token generation with a KV cache, against PyTorch's on the whole row.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/threads.h"
#include "device/device.h"
#include "golden_case.h"
#include "models/decoder.h"
#include "planner/inference.h"
#include "planner/techniques/lora.h"
#include "planner/techniques/precision.h"
#include "runtime/executor.h"
#include "weights/adapter.h"
#include "weights/adapter_files.h"
#include "weights/weights.h"

namespace headroom::test {
namespace {

constexpr double kLogitsTolerance = 5e-6;  // relative L2 distance, per position
constexpr double kNarrowTolerance = 8e-2;  // the same with weights and activations of 8 significant bits
constexpr int64_t kChunk = 16;

class GoldenLogits : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = GoldenCase::open(GetParam());
    const SafetensorsFile file = SafetensorsFile::open(golden_.folder / "expected_logits.safetensors");
    expected_ = read_floats(file, "logits");
    vocab_ = static_cast<size_t>(golden_.model.spec.vocab);
  }

  void make_executor(const std::string& precision = "32-true", const std::filesystem::path& adapter = {}) {
    // With experts, rounding sends some tokens to others.
    if (precision == "bf16-true") tolerance_ = kNarrowTolerance * (golden_.model.spec.experts.count > 0 ? 2 : 1);
    PlanRequest request;
    set_precision(request, precision);
    if (!adapter.empty())
      request.techniques["lora"] = lora_pin(lora_options(open_adapter(adapter), golden_.model.spec));
    request.profile = load_profile("cpu-avx2");
    request.facts = cpu_facts(1);
    set_threads(request.facts.threads);
    request.budget_bytes = int64_t{1} << 30;
    const std::vector<int64_t> chunks{kChunk};
    plan_ = plan_generation(request, {}, chunks, [&](int64_t chunk) {
      return build_generation(golden_.model.spec, golden_.row_length(), chunk,
                              precision == "bf16-true" ? DType::bf16 : DType::f32);
    });
    device_ = make_cpu_device(plan_.facts);
    executor_ = std::make_unique<Executor>(plan_, *device_, nullptr);
    read_weights(*executor_, golden_.model.spec, SafetensorsSet::open(golden_.model.directory));
    if (!adapter.empty()) load_adapter(*executor_, requested_lora(request), adapter);
    executor_->run("load", {});
  }

  // Feeds `count` tokens of a row after those in the cache and compares the logits of the last one.
  void expect_logits(const char* program, const char* ids_name, size_t row, int64_t offset, int64_t count) {
    const TensorView ids = executor_->tensor(ids_name);
    std::fill_n(ids.as<int32_t>(), ids.count(), 0);
    std::copy_n(golden_.ids[row].begin() + offset, count, ids.as<int32_t>());
    *executor_->tensor("offset").as<int32_t>() = static_cast<int32_t>(offset);
    *executor_->tensor("last").as<int32_t>() = static_cast<int32_t>(count) - 1;
    executor_->run(program, {});
    const TensorView logits = executor_->result(program, 0);
    ASSERT_EQ(static_cast<size_t>(logits.count()), vocab_);
    const auto position = static_cast<size_t>(offset + count - 1);
    const auto begin = expected_.begin() + static_cast<std::ptrdiff_t>(
                                               (row * static_cast<size_t>(golden_.row_length()) + position) * vocab_);
    const std::vector<float> expected(begin, begin + static_cast<std::ptrdiff_t>(vocab_));
    const std::vector<float> computed(logits.as<float>(), logits.as<float>() + logits.count());
    EXPECT_LE(l2_distance(computed, expected), tolerance_ * l2_norm(expected))
        << program << ", row " << row << ", position " << position;
  }

  GoldenCase golden_;
  std::vector<float> expected_;
  size_t vocab_ = 0;
  double tolerance_ = kLogitsTolerance;
  Plan plan_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
};

TEST_P(GoldenLogits, TokenByTokenAreTorchs) {
  make_executor();
  for (size_t row : {0u, 1u})
    for (int64_t position = 0; position < golden_.row_length(); ++position)
      expect_logits("decode", "decode_ids", row, position, 1);
}

TEST_P(GoldenLogits, InBf16AreTorchsToItsPrecision) {
  make_executor("bf16-true");
  for (size_t row : {0u, 1u}) {
    expect_logits("prefill", "prefill_ids", row, 0, kChunk);
    for (int64_t position = kChunk; position < golden_.row_length(); ++position)
      expect_logits("decode", "decode_ids", row, position, 1);
  }
  int64_t cache = 0;
  for (const PersistentTensor& tensor : plan_.tensors) {
    // Matrices are stored in bf16; vectors keep their type.
    const DType stored = tensor.place.type.dims.size() == 1 ? DType::f32 : DType::bf16;
    EXPECT_TRUE(tensor.role != Role::parameter || tensor.place.type.dtype == stored) << tensor.name;
    if (tensor.role == Role::kv_cache) cache += storage_bytes(tensor.place.type);
  }
  const ModelSpec& spec = golden_.model.spec;
  EXPECT_EQ(cache, spec.layers * 2 * golden_.row_length() * spec.kv_heads * spec.head_dim * 2);
}

TEST_P(GoldenLogits, OfPrefilledChunksAreTorchs) {
  make_executor();
  for (size_t row : {0u, 1u}) {
    expect_logits("prefill", "prefill_ids", row, 0, kChunk);
    expect_logits("prefill", "prefill_ids", row, kChunk, 5);
    for (int64_t position = kChunk + 5; position < golden_.row_length(); ++position)
      expect_logits("decode", "decode_ids", row, position, 1);
  }
}

std::string case_name(const testing::TestParamInfo<const char*>& param) { return param.param; }

INSTANTIATE_TEST_SUITE_P(Cases, GoldenLogits,
                         testing::Values("llama_gqa_tied", "llama_rope_llama3", "llama_rope_linear", "qwen2_bias",
                                         "mistral_window", "gpt2", "qwen3", "olmo2", "gemma2", "gemma3", "gpt_neox",
                                         "gpt_neox_sequential", "phi3_longrope", "starcoder2", "mixtral", "qwen3_moe"),
                         case_name);

// With an adapter, as computed by PEFT.
class AdapterLogits : public GoldenLogits {
 protected:
  void SetUp() override {
    GoldenLogits::SetUp();
    adapter_ = golden_.folder / "lora";
    expected_ = read_floats(SafetensorsFile::open(adapter_ / "logits.safetensors"), "logits");
  }
  void expect_row() {
    expect_logits("prefill", "prefill_ids", 0, 0, kChunk);
    for (int64_t position = kChunk; position < golden_.row_length(); ++position)
      expect_logits("decode", "decode_ids", 0, position, 1);
  }
  std::filesystem::path adapter_;
};

TEST_P(AdapterLogits, ArePefts) {
  make_executor("32-true", adapter_);
  expect_row();
}

TEST_P(AdapterLogits, InBf16ArePeftsToItsPrecision) {
  make_executor("bf16-true", adapter_);
  expect_row();
}

INSTANTIATE_TEST_SUITE_P(Cases, AdapterLogits,
                         testing::Values("llama_gqa_tied", "qwen2_bias", "gpt2", "mixtral", "qwen3_moe", "gemma2"),
                         case_name);

}  // namespace
}  // namespace headroom::test
