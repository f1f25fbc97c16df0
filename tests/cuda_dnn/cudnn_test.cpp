// cuDNN itself, planning for described GPUs: every kind of call that headroom makes is prepared completely, its code
// compiled, and nothing runs. The library is the one that CMake found, or the one named by the environment variable
// HEADROOM_CUDNN_LIBRARY. Skipped if there is none, or if the build does not have its headers.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "described_devices.h"
#include "fake_dnn.h"
#include "ops/attention/cuda_scratch.h"
#include "ops/cuda/cudnn.h"

#ifndef HEADROOM_TEST_CUDNN
#define HEADROOM_TEST_CUDNN ""
#define HEADROOM_TEST_DRIVER ""
#endif

namespace headroom {
namespace {

using namespace op_test;

struct Model {
  const char* name;
  int64_t heads, kv_heads, dim;
};
constexpr Model kModels[] = {{"Qwen2.5-0.5B", 14, 2, 64},
                             {"Qwen2.5-1.5B", 12, 2, 128},
                             {"Llama-3.2-3B", 24, 8, 128},
                             {"Qwen2.5-7B", 28, 4, 128}};

AttentionShape shape_of(const Model& model, int64_t batch, int64_t length) {
  AttentionShape shape;
  shape.batch = batch;
  shape.queries = shape.keys = length;
  shape.heads = model.heads;
  shape.kv_heads = model.kv_heads;
  shape.dim = model.dim;
  shape.scale = 1 / std::sqrt(static_cast<double>(model.dim));
  return shape;
}

class Cudnn : public testing::TestWithParam<DescribedDevice> {
 protected:
  void SetUp() override {
    const char* const chosen = std::getenv("HEADROOM_CUDNN_LIBRARY");
    const std::string path = chosen ? chosen : HEADROOM_TEST_CUDNN;
    std::string reason = "cuDNN is not installed: HEADROOM_CUDNN_LIBRARY names none";
    if (!path.empty()) {
      const bool needs_driver = *HEADROOM_TEST_DRIVER != 0;
      ASSERT_TRUE(!needs_driver || dlopen(HEADROOM_TEST_DRIVER, RTLD_NOW | RTLD_GLOBAL)) << dlerror();
      library = open_cudnn(GetParam().capability, reason, {path, properties_json(GetParam())});
    }
    if (!library) GTEST_SKIP() << reason;
    facts.device = "cuda";
    facts.capabilities = of_compute_capability(GetParam().capability);
  }

  // The library accepts the call within what the plan books for it.
  template <typename Call>
  void expect_planned(const CudaLibraryOffer<Call>& offer, int64_t booked) {
    ASSERT_TRUE(offer.call) << offer.refusal;
    EXPECT_LE(offer.call->workspace_bytes(), booked);
    // At most twice what it takes, without the spare.
    EXPECT_LE(booked - kCudnnSpare, 2 * offer.call->workspace_bytes());
  }
  void expect_attention(const AttentionShape& shape) {
    SCOPED_TRACE(fmt::format("{} x {} tokens, {}/{} heads of {}, causal {}, window {}", shape.batch, shape.queries,
                             shape.heads, shape.kv_heads, shape.dim, shape.causal, shape.window));
    const int64_t booked = attention_spec(shape, false, facts).scratch_bytes;
    expect_planned(library->attention(shape, booked), booked);
  }
  void expect_gradient(const AttentionShape& shape) {
    SCOPED_TRACE(fmt::format("gradient of {} x {} tokens, {}/{} heads of {}, causal {}, window {}", shape.batch,
                             shape.queries, shape.heads, shape.kv_heads, shape.dim, shape.causal, shape.window));
    const int64_t booked =
        std::max(attention_spec(shape, true, facts).scratch_bytes, cudnn_grad_workspace(shape, facts));
    const auto offer = library->attention_grad(shape, booked);
    if (compute_capability(facts) == 90 && has_ordered_gradient()) return expect_planned(offer, booked);
    // headroom's own kernels are used: the library would need a matrix of queries by keys.
    EXPECT_FALSE(offer.call);
    EXPECT_NE(offer.refusal.find("workspace"), std::string::npos) << offer.refusal;
  }
  // Since 9.25 the gradient adds into dq in a fixed order.
  bool has_ordered_gradient() const {
    int major = 0, minor = 0;
    EXPECT_EQ(std::sscanf(library->name().c_str(), "cuDNN %d.%d", &major, &minor), 2);
    return major > 9 || minor >= 25;
  }

  DeviceFacts facts;
  std::unique_ptr<CudaDnn> library;
};

TEST_P(Cudnn, PlansTheModelsWithinTheBookedWorkspace) {
  for (const Model& model : kModels) {
    expect_attention(shape_of(model, 2, 1024));
    expect_gradient(shape_of(model, 2, 1024));
  }
}

TEST_P(Cudnn, PlansLongSequencesWithinTheBookedWorkspace) {
  for (const Model& model : kModels) {
    expect_attention(shape_of(model, 1, 4096));
    expect_gradient(shape_of(model, 1, 4096));
  }
}

TEST_P(Cudnn, PlansOtherShapesAndMasks) {
  AttentionShape shape = shape_of({"", 4, 4, 64}, 2, 1000);
  shape.window = 300;
  expect_attention(shape);
  expect_gradient(shape);
  shape = shape_of({"", 6, 1, 96}, 1, 777);
  shape.causal = false;
  expect_attention(shape);
  expect_gradient(shape);
}

TEST_P(Cudnn, MakesACallOnce) {
  const AttentionShape shape = shape_of({"", 2, 1, 64}, 1, 256);
  const auto call = library->attention(shape, kCudnnSpare).call;
  ASSERT_TRUE(call);
  EXPECT_EQ(library->attention(shape, kCudnnSpare).call, call);
  AttentionShape scaled = shape;
  scaled.scale = 2;
  EXPECT_NE(library->attention(scaled, kCudnnSpare).call, call);
}

TEST_P(Cudnn, RefusesInItsOwnWords) {
  AttentionShape shape = shape_of({"", 2, 1, 64}, 1, 256);
  for (int64_t workspace : {0, 1000}) {
    const auto offer = library->attention_grad(shape, workspace);
    EXPECT_FALSE(offer.call);
    EXPECT_EQ(offer.refusal.find("cuDNN "), 0u) << offer.refusal;
    EXPECT_NE(offer.refusal.find("workspace"), std::string::npos) << offer.refusal;
  }
  shape.dim = 60;
  EXPECT_EQ(library->attention(shape, kCudnnSpare).refusal.find("cuDNN "), 0u);
  shape.dim = 64;
  shape.softcap = 30;
  EXPECT_FALSE(library->attention(shape, kCudnnSpare).call);
}

// Gradients with sums in any order: all versions and devices support them, within what the plan books.
class CudnnAnyOrder : public Cudnn {
 protected:
  void expect_any_order(AttentionShape shape) {
    shape.any_order = true;
    SCOPED_TRACE(fmt::format("gradient in any order of {} x {} tokens, {}/{} heads of {}, causal {}, window {}",
                             shape.batch, shape.queries, shape.heads, shape.kv_heads, shape.dim, shape.causal,
                             shape.window));
    const int64_t booked = attention_spec(shape, true, facts).scratch_bytes;
    EXPECT_EQ(booked, cudnn_grad_workspace(shape, facts));
    expect_planned(library->attention_grad(shape, booked), booked);
  }
};

TEST_P(CudnnAnyOrder, IsPlannedWithinTheBookedWorkspace) {
  for (const Model& model : kModels) expect_any_order(shape_of(model, 2, 1024));
  expect_any_order(shape_of(kModels[2], 1, 4096));
  AttentionShape shape = shape_of({"", 4, 4, 64}, 2, 1000);
  expect_any_order(shape);
  shape.window = 300;
  expect_any_order(shape);
  shape = shape_of({"", 6, 1, 96}, 1, 777);
  shape.causal = false;
  expect_any_order(shape);
}

// A version without a fixed order says so only when a plan asks for it.
TEST_P(CudnnAnyOrder, NoVersionIsTooOld) {
  const AttentionShape shape = shape_of({"", 2, 1, 64}, 1, 1024);
  expect_any_order(shape);
  EXPECT_EQ(library->remark(), "");
  library->attention_grad(shape, cudnn_grad_workspace(shape, facts));
  const bool lacks_it = compute_capability(facts) == 90 && !has_ordered_gradient();
  EXPECT_EQ(library->remark().find("is older than 9.25.0") != std::string::npos, lacks_it) << library->remark();
}

INSTANTIATE_TEST_SUITE_P(Described, Cudnn, testing::Values(kA100, kL40s, kH100),
                         [](const auto& device) { return fmt::format("Capability{}", device.param.capability); });
INSTANTIATE_TEST_SUITE_P(Described, CudnnAnyOrder, testing::Values(kA100, kL40s, kH100, kB200, kRtx5090),
                         [](const auto& device) { return fmt::format("Capability{}", device.param.capability); });

}  // namespace
}  // namespace headroom
