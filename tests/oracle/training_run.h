// Trains a golden case on the CPU with planner and executor, and inspects the gradients.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "golden_case.h"
#include "planner/search.h"
#include "runtime/executor.h"
#include "train/loss_scaler.h"

namespace headroom::test {

// Options for the case's batch: one micro-batch of all rows, fp32, no clipping, the update in a separate phase.
TrainOptions plain_options(const GoldenCase& golden);

using Gradients = std::map<std::string, std::vector<float>>;

struct StepOutcome {
  double loss = 0;
  double targets = 0;
  double gradient_norm = 0;
  Gradients gradients;    // as read by the update of each weight, before clipping, without the loss scale
  double loss_scale = 1;  // of fp16
  bool skipped = false;   // because a gradient was not finite
};

class TrainingRun {
 public:
  // Plans with ample memory, loads the weights and zeroes the optimizer's states. `adapter`: initial values for the
  // adapter of options.lora; without it a fresh one. `change` modifies the plan before it is executed.
  TrainingRun(const GoldenCase& golden, const TrainOptions& options, const std::filesystem::path& adapter = {},
              const std::function<void(const PlanRequest&, Plan&)>& change = {});
  ~TrainingRun();

  StepOutcome step();
  // Mean loss, by the plan's program "evaluate".
  double evaluate();
  const Plan& plan() const { return result_.plan; }
  // The current value of a parameter; adapters and modules to save have the names of PEFT's file.
  std::vector<float> parameter(const std::string& name);
  // Writes the adapter's files.
  void save_adapter(const std::filesystem::path& directory);
  // The optimizer's states, as their bytes.
  std::vector<std::byte> states();
  // Adds `factor` times a direction to an fp32 parameter.
  void move(const std::string& name, const std::vector<float>& direction, double factor);
  // Rounds every fp32 weight to the nearest bf16, in place.
  void round_weights();

 private:
  class BatchPort;
  class WatchedDevice;
  Gradients named(const std::map<const void*, std::vector<float>>& by_weight) const;

  const GoldenCase& golden_;
  TrainOptions options_;
  SearchResult result_;
  std::unique_ptr<BatchPort> port_;
  std::unique_ptr<WatchedDevice> device_;
  std::unique_ptr<Executor> executor_;
  LossScaler scaler_;
  LossScaleState scaling_;
  int64_t steps_ = 0;
};

}  // namespace headroom::test
