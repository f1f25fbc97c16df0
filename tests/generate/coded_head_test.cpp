// Embedding and head as codes: bytes of the plan, and logits that are bitwise those of the decoded matrices.
#include <gtest/gtest.h>

#include <cstring>

#include "../formats/expect_error.h"
#include "../runtime/tiny_run.h"
#include "engine/quantize.h"
#include "engine/serving.h"
#include "small_server.h"

namespace headroom {
namespace {

constexpr int64_t kVocabulary = 258, kWidth = 32;

// The logits of every token of a sequence, `chunk` tokens to a step.
std::vector<float> logits_of(const InferenceOptions& options, int32_t chunk) {
  ServedModel model(options, plan_serving(options, small_sizes()));
  const std::vector<int32_t> blocks{0, 1, 2, 3, 4, 5};
  std::vector<float> out;
  for (int32_t first = 0; first < 24; first += chunk) {
    Step step;
    step.tables.push_back(blocks);
    for (int32_t i = 0; i < chunk; ++i) {
      step.wanted.push_back(i);
      step.rows.push_back({(first + i) * 37 % 250, first + i, 0});
    }
    const std::span<const float> logits = model.runner().run(step);
    out.insert(out.end(), logits.begin(), logits.begin() + chunk * kVocabulary);
  }
  return out;
}

int64_t weight_bytes(const InferenceOptions& options) {
  const ServingPlan plan = plan_serving(options, small_sizes());
  EXPECT_TRUE(plan.plan.feasible);
  int64_t bytes = 0;
  for (const PersistentTensor& tensor : plan.plan.tensors)
    if (tensor.role == Role::parameter) bytes += storage_bytes(tensor.place.type);
  return bytes;
}

std::string config(bool tied) {
  std::string text = kTinyConfig;
  const std::string key = R"("tie_word_embeddings":true)";
  if (!tied) text.replace(text.find(key), key.size(), R"("tie_word_embeddings":false)");
  return text;
}

struct Stored {
  const char* weights;
  const char* layers;  // the setting that leaves embedding and head decoded
  int64_t block_bytes;
  bool tied;
};

class StoredHead : public testing::TestWithParam<Stored> {
 protected:
  void SetUp() override {
    write_tiny_model(directory_, config(GetParam().tied).c_str());
    quantize_model({directory_ / "model", directory_ / "codes", GetParam().weights});
  }
  InferenceOptions options(const char* precision, bool decoded) const {
    InferenceOptions out = served_options(directory_ / "codes");
    out.techniques.precision = precision;
    if (decoded) out.techniques.pins["quantize-weights"] = GetParam().layers;
    return out;
  }

  TemporaryDirectory directory_;
};

TEST_P(StoredHead, TakesTheBytesOfItsCodes) {
  const int64_t elements = kVocabulary * kWidth * (GetParam().tied ? 1 : 2);
  for (const auto& [precision, bytes] : {std::pair{"32-true", 4}, std::pair{"bf16-true", 2}})
    EXPECT_EQ(weight_bytes(options(precision, true)) - weight_bytes(options(precision, false)),
              elements * bytes - elements / 32 * GetParam().block_bytes)
        << precision;
}

TEST_P(StoredHead, GivesTheLogitsOfTheDecodedOne) {
  for (const char* precision : {"32-true", "bf16-true", "16-true"})
    for (const int32_t chunk : {1, 8, 12}) {
      const std::vector<float> decoded = logits_of(options(precision, true), chunk),
                               coded = logits_of(options(precision, false), chunk);
      ASSERT_EQ(decoded.size(), coded.size());
      EXPECT_EQ(std::memcmp(decoded.data(), coded.data(), decoded.size() * sizeof(float)), 0)
          << precision << ", " << chunk << " tokens a step";
    }
}

INSTANTIATE_TEST_SUITE_P(Files, StoredHead,
                         testing::Values(Stored{"q8_0", "int8-g32", 36, true}, Stored{"q8_0", "int8-g32", 36, false},
                                         Stored{"q4_0", "int4", 20, true}, Stored{"q4_0", "int4", 20, false}),
                         [](const auto& info) {
                           return std::string(info.param.weights) + (info.param.tied ? "_tied" : "");
                         });

// With the codes of the checkpoint's numbers: a scale for each row of 32 elements.
TEST(NamedHead, TakesTheBytesOfItsCodes) {
  for (const bool tied : {true, false}) {
    const TemporaryDirectory directory;
    write_tiny_model(directory, config(tied).c_str());
    const auto bytes = [&](const char* setting) {
      InferenceOptions options = served_options(directory / "model");
      options.techniques.pins["quantize-weights"] = setting;
      return weight_bytes(options);
    };
    const int64_t saved = kVocabulary * (4 * kWidth - kWidth - 4);
    EXPECT_EQ(bytes("int8") - bytes("int8+head"), saved);
    EXPECT_EQ(bytes("int8") - bytes("int8+embedding"), saved);
    EXPECT_EQ(bytes("int8") - bytes("int8+embedding+head"), tied ? saved : 2 * saved);
  }
}

TEST(NamedHead, IsRefusedWhereNoKernelReadsIt) {
  const TemporaryDirectory directory;
  write_tiny_model(directory, config(false).c_str());
  InferenceOptions options = served_options(directory / "model");
  const auto refused = [&](const char* setting, const std::string& part) {
    options.techniques.pins["quantize-weights"] = setting;
    expect_error(ErrorKind::usage, part, [&] { plan_serving(options, small_sizes()); });
  };
  refused("int8+norm", "no such parts");
  refused("int8+head:int9", "int9");
  refused("int8+head:off", "off");
  refused("off+head", "off");
  refused("int8+head:int8-g24", "not a multiple of 24");
  options.machine.device = "null";
  options.machine.profile = "A100-80GB";
  refused("int8+head", "built for the CPU");
}

}  // namespace
}  // namespace headroom
