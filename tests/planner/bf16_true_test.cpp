// bf16 matrices take exactly half the bytes of fp32 ones, in every kind of plan; vectors that are not updated keep
// their type.
#include <gtest/gtest.h>

#include "models/decoder.h"
#include "planner/inference.h"
#include "planner/techniques/precision.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

PlanRequest inference_request(const ModelFiles& model, const std::string& precision) {
  PlanRequest request;
  request.profile = load_profile("cpu-avx2");
  request.facts = request.profile.facts;
  request.budget_bytes = int64_t{1} << 50;
  set_precision(request, precision);
  request.seq_length = 32;
  request.forward = build_training_forward(model.spec, request.global_batch, request.seq_length);
  return request;
}

Plan generation(const ModelFiles& model, const std::string& precision) {
  static constexpr int64_t kChunks[] = {8};
  return plan_generation(inference_request(model, precision), {}, kChunks, [&](int64_t chunk) {
    return build_generation(model.spec, 32, chunk, precision == "bf16-true" ? DType::bf16 : DType::f32);
  });
}

class Bf16True : public testing::TestWithParam<const char*> {
 protected:
  ModelFiles model() const {
    return open_model(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/oracle" / GetParam() / "model");
  }
};

// Bytes of the weights if the matrices of a plan were halved; vectors keep their type.
int64_t with_half_matrices(const Plan& wide) {
  int64_t bytes = 0;
  for (const PersistentTensor& tensor : wide.tensors)
    if (tensor.role == Role::parameter)
      bytes += storage_bytes(tensor.place.type) / (tensor.place.type.dims.size() == 1 ? 1 : 2);
  return bytes;
}

TEST_P(Bf16True, HalvesTheWeightsOfGeneration) {
  const Plan wide = generation(model(), "32-true"), narrow = generation(model(), "bf16-true");
  EXPECT_EQ(narrow.breakdown.weights, with_half_matrices(wide));
  EXPECT_LT(narrow.peak_bytes, wide.peak_bytes);
}

TEST_P(Bf16True, HalvesTheWeightsOfEvaluation) {
  const Plan wide = plan_evaluation(inference_request(model(), "32-true")),
             narrow = plan_evaluation(inference_request(model(), "bf16-true"));
  EXPECT_EQ(narrow.breakdown.weights, with_half_matrices(wide));
  EXPECT_EQ(narrow.peak_bytes, narrow.arena_bytes + narrow.process.total());
}

INSTANTIATE_TEST_SUITE_P(Families, Bf16True,
                         testing::Values("llama_gqa_tied", "gpt2", "gpt_neox", "qwen2_bias", "gemma2", "starcoder2"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace headroom::test
