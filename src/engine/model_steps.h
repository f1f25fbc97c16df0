// Steps of a model by the programs of a serving plan.
#pragma once

#include <string>
#include <vector>

#include "generate/step_runner.h"
#include "runtime/executor.h"

namespace headroom {

class ModelSteps final : public StepRunner {
 public:
  // The executor's plan has the programs of models/serving.h for these limits. It outlives this.
  ModelSteps(Executor& executor, const StepLimits& limits);

  const StepLimits& limits() const override { return limits_; }
  std::span<const float> run(const Step& step) override;
  std::span<const float> hidden_states() override;
  // Heap of a runner beside what a step has.
  static int64_t hidden_bytes(const StepLimits& limits) {
    return limits.logits * limits.hidden * static_cast<int64_t>(sizeof(float));
  }

 private:
  // The program of a number of rows, and what it reads and gives.
  struct Size {
    int64_t rows = 0, logits = 0;
    std::string program;
    TensorView ids, positions, angles, slots, owners, wanted, result, hidden;
  };
  void check(const Step& step) const;
  void fill_rows(const Step& step, const Size& size);
  void fill_tables(const Step& step);
  void put(const TensorView& to, const std::vector<int32_t>& values);

  Executor& executor_;
  StepLimits limits_;
  std::vector<Size> sizes_;  // ascending in rows
  TensorView tables_;
  std::vector<int32_t> ids_, positions_, angles_, slots_, owners_, wanted_, blocks_;
  std::vector<float> logits_;  // where the host does not see the arena
  std::vector<float> hidden_;
  const Size* last_ = nullptr;  // of the last run
};

}  // namespace headroom
