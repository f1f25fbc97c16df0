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

 private:
  // The program of a number of rows, and what it reads and gives.
  struct Size {
    int64_t rows = 0, logits = 0;
    std::string program;
    TensorView ids, positions, angles, slots, owners, wanted, adapters, result;
  };
  void check(const Step& step) const;
  void fill_rows(const Step& step, const Size& size);
  void fill_tables(const Step& step);
  void put(const TensorView& to, const std::vector<int32_t>& values);

  Executor& executor_;
  StepLimits limits_;
  std::vector<Size> sizes_;  // ascending in rows
  TensorView tables_;
  std::vector<int32_t> ids_, positions_, angles_, slots_, owners_, wanted_, adapters_, blocks_;
  std::vector<float> logits_;  // where the host does not see the arena
};

}  // namespace headroom
