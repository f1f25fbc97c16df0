// Everything that the engine plans for a GPU has kernels: every instruction of every program of each family, precision
// and technique is prepared on the CUDA device over host memory. Nothing is executed.
#include <gtest/gtest.h>

#include "../models/tiny_families.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "engine/training_request.h"
#include "models/decoder.h"
#include "ops/cuda/capabilities.h"
#include "planner/inference.h"
#include "planner/search.h"
#include "runtime/executor.h"
#include "weights/model_files.h"

namespace headroom {
namespace {

constexpr const char* kPrecisions[] = {"32-true", "bf16-mixed", "bf16-true", "16-mixed", "16-true"};

ModelFiles model_of(const TinyModel& tiny) {
  ModelFiles model;
  model.config = HfConfig::parse(tiny.config.dump(), tiny.name + "/config.json");
  model.spec = read_model_spec(model.config);
  return model;
}

// Without searching micro-batch, chunk and kept activations.
TrainOptions pinned_options(const std::string& precision) {
  TrainOptions options;
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.machine.memory = int64_t{1} << 40;
  options.data.global_batch_size = 4;
  options.data.micro_batch_size = 2;
  options.techniques.precision = precision;
  options.techniques.pins = {{"recompute", "off"}, {"chunked-loss", "16"}};
  return options;
}

// For a device with little shared memory and workspace, which the library's products would need.
PlanRequest request_of(const TrainOptions& options, const ModelFiles& model) {
  PlanRequest request = training_request(options, model);
  request.facts.gemm_workspace_cap = 1 << 16;
  return request;
}

bool in_bf16(const TrainOptions& options) { return options.techniques.precision.starts_with("bf16"); }

struct Variation {
  const char* name;
  void (*change)(TrainOptions& options);
};

constexpr Variation kVariations[] = {
    {"plain", [](TrainOptions&) {}},
    {"recomputed, packed where rows can share a sequence",
     [](TrainOptions& o) { o.techniques.pins["recompute"] = "block-input", o.techniques.allow = {"packing"}; }},
    {"fused, products in TF32 or fp8",
     [](TrainOptions& o) {
       o.data.micro_batch_size = 4, o.techniques.max_grad_norm = 0;
       if (o.techniques.precision == "32-true") o.techniques.matmul_precision = "high";
       if (in_bf16(o)) o.techniques.matmul_precision = "fp8";
     }},
    {"adapters, the gradient of attention in any order",
     [](TrainOptions& o) {
       o.techniques.lora.rank = 4, o.techniques.lora.dropout = 0.1;
       if (in_bf16(o)) o.techniques.attention_order = "any";
     }},
    {"buckets, products in bf16",
     [](TrainOptions& o) {
       o.techniques.group_by_length = true;
       if (o.techniques.precision == "32-true") o.techniques.matmul_precision = "medium";
     }},
    {"offloaded",
     [](TrainOptions& o) {
       o.machine.host_memory = int64_t{1} << 40;
       for (const char* name : {"offload-optimizer", "offload-gradients", "offload-parameters", "offload-activations"})
         o.techniques.pins[name] = "on";
     }},
};

// Prepares every kernel of the plan, as a run does before its first step.
void expect_kernels(const Plan& plan) {
  ASSERT_TRUE(plan.feasible);
  try {
    const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(), plan.facts);
    Executor(plan, *device, nullptr);
  } catch (const InternalError& error) {
    ADD_FAILURE() << error.what();
  }
}

class EveryInstruction : public testing::TestWithParam<TinyModel> {
 protected:
  EveryInstruction() : model_(model_of(GetParam())) {}
  ModelFiles model_;
};

TEST_P(EveryInstruction, OfTrainingHasAKernel) {
  for (const char* precision : kPrecisions)
    for (const Variation& variation : kVariations) {
      SCOPED_TRACE(fmt::format("{} {}", precision, variation.name));
      TrainOptions options = pinned_options(precision);
      variation.change(options);
      if (!model_.spec.experts.layers.empty()) options.techniques.lora.dropout = 0;  // refused for experts
      expect_kernels(search_training_plan(request_of(options, model_)).plan);
    }
}

// The lowest supported compute capability, where bf16 is only a storage type.
TEST_P(EveryInstruction, OfTrainingHasAKernelOnTuring) {
  for (const char* precision : kPrecisions) {
    SCOPED_TRACE(precision);
    PlanRequest request = request_of(pinned_options(precision), model_);
    request.facts.capabilities = of_compute_capability(75);
    request.facts.native_bf16 = false;
    expect_kernels(search_training_plan(request).plan);
  }
}

TEST_P(EveryInstruction, OfInferenceHasAKernel) {
  for (const char* precision : kPrecisions)
    for (int64_t rank : {0, 4}) {
      SCOPED_TRACE(fmt::format("{} rank {}", precision, rank));
      TrainOptions options = pinned_options(precision);
      options.techniques.lora.rank = rank;
      options.techniques.pins.clear();  // they are for training
      PlanRequest request = request_of(options, model_);
      expect_kernels(plan_evaluation(request));
      if (model_.spec.objective != Objective::language || options.techniques.precision.ends_with("-mixed")) continue;
      const DType cache = options.techniques.precision == "bf16-true" ? DType::bf16
                          : options.techniques.precision == "16-true" ? DType::f16
                                                                      : DType::f32;
      const int64_t chunks[] = {8};
      expect_kernels(plan_generation(request, {}, chunks, [&](int64_t chunk) {
        return build_generation(model_.spec, request.seq_length, chunk, cache);
      }));
    }
}

INSTANTIATE_TEST_SUITE_P(Families, EveryInstruction, testing::ValuesIn(tiny_families()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace headroom
