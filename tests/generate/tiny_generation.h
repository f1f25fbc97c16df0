// Generates tokens with a tiny model on disk, by a plan that a test may change.
#pragma once

#include <gtest/gtest.h>

#include "../runtime/tiny_run.h"
#include "engine/process_bytes.h"
#include "generate/generator.h"
#include "models/decoder.h"
#include "planner/inference.h"
#include "planner/techniques/precision.h"

namespace headroom {

class TinyGeneration {
 public:
  using Change = std::function<void(PlanRequest&)>;

  // `change` modifies the request: budgets, techniques, precision.
  TinyGeneration(const std::filesystem::path& model, int64_t positions, int64_t chunk, const Change& change = {},
                 const TinyRun::MakeDevice& make_device = make_cpu_device)
      : model_(open_model(model)), plan_(plan(model_, positions, chunk, change)) {
    EXPECT_TRUE(plan_.feasible);
    device_ = make_device(plan_.facts);
    executor_ = std::make_unique<Executor>(plan_, *device_, nullptr);
    // NaN wherever nothing has been written.
    for (const Tier tier : {Tier::device, Tier::host})
      if (plan_.arenas().of(tier) > 0) std::memset(executor_->arena(tier).data(), 0xff, executor_->arena(tier).size());
    load_weights(*executor_, model_.spec, SafetensorsSet::open(model_.directory));
  }

  static Plan plan(const ModelFiles& model, int64_t positions, int64_t chunk, const Change& change) {
    set_threads(1);
    PlanRequest request;
    request.profile = load_profile("cpu-avx2");
    request.facts = cpu_facts(1);
    request.model = model.spec.family;
    request.parameters = parameter_count(model.spec);
    request.budget_bytes = int64_t{1} << 30;
    request.process = process_parts(model, request.facts, true);
    request.seq_length = positions;
    if (change) change(request);
    const DType cache = precision_of(request) == "bf16-true" ? DType::bf16 : DType::f32;
    const int64_t chunks[] = {chunk};
    return plan_generation(request, {positions / 2, positions / 2}, chunks,
                           [&](int64_t size) { return build_generation(model.spec, positions, size, cache); });
  }

  // The least --memory that works with the request's other budgets.
  static int64_t least(const std::filesystem::path& model, int64_t positions, int64_t chunk, const Change& change) {
    return plan(open_model(model), positions, chunk,
                [&](PlanRequest& request) {
                  if (change) change(request);
                  request.budget_bytes = 1;
                })
        .minimum_bytes;
  }

  std::vector<int32_t> run(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                           size_t stop_after = SIZE_MAX) {
    std::vector<int32_t> told;
    const std::vector<int32_t> ids = generate_tokens(*executor_, prompt, options, [&](int32_t id) {
      told.push_back(id);
      return told.size() < stop_after;
    });
    EXPECT_EQ(told, ids);
    return ids;
  }

  // For the token that was decoded last.
  std::vector<float> logits() {
    const TensorView result = executor_->result("decode", 0);
    std::vector<float> buffer(static_cast<size_t>(result.count()));
    const std::span<const float> values = executor_->get<float>(result, std::span<float>(buffer));
    return {values.begin(), values.end()};
  }

  const Plan& plan() const { return plan_; }
  Executor& executor() { return *executor_; }

 private:
  ModelFiles model_;
  Plan plan_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
};

inline std::vector<int32_t> tiny_prompt(int64_t length) {
  std::vector<int32_t> ids{256};
  for (int64_t i = 1; i < length; ++i) ids.push_back(static_cast<int32_t>(i * 37 % 256));
  return ids;
}

}  // namespace headroom
