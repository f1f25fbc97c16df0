// The loop of a training run: steps, with evaluations and checkpoints between them, until the last step, a request to
// stop, or no better evaluation.
#pragma once

#include <optional>

#include "device/device.h"
#include "train/loss_scaler.h"
#include "train/metrics.h"
#include "train/options.h"
#include "train/resume_point.h"
#include "train/run_data.h"
#include "train/run_events.h"
#include "train/run_log.h"
#include "train/run_record.h"
#include "train/run_saver.h"
#include "train/training_steps.h"

namespace headroom {

// The inputs of a loop; all of them outlive it.
struct TrainingParts {
  const TrainOptions& options;
  const ModelFiles& model;
  const RunData& data;
  const RowTargets& targets;             // of the training data
  const RowTargets& evaluation_targets;  // of the other sets
  Executor& executor;                    // its weights and states filled
  BatchPort& port;
  Device& device;
  const TrainEvents& events;
  RunControl& control;
};

class TrainingLoop {
 public:
  // Continues from `from` to `total_steps`, and opens the run's files: metrics, events, process.json. Throws
  // Error(run).
  TrainingLoop(const TrainingParts& parts, const ResumePoint& from, int64_t total_steps);

  // Steps, evaluations, checkpoints. Throws Error(run) on I/O errors, if the device fails, and if training diverges.
  void run();
  // Writes the last evaluation, checkpoint and model, and run.json.
  void finish();

  int64_t steps() const { return state_.step; }
  int stopped_by() const { return stopped_by_; }  // a signal, or 0

 private:
  void begin_state();
  void step();
  void begin_scaling();
  void move_scale(StepReport& report);
  void stop_or_skip(const StepReport& report) const;
  void evaluate();
  void tell_evaluation(const std::string& set, const EvaluationResult& result);
  void check_loss(double loss);
  RunSummary summary();

  TrainingParts parts_;
  RunState state_;
  int64_t evaluated_at_;  // the step of the last evaluation; -1: none
  RunLog log_;
  RunRecord record_;
  RunSaver saver_;
  TrainingSteps steps_;
  LossScaler scaler_;
  int stopped_by_ = 0;
  std::optional<EarlyStop> early_stop_;
};

}  // namespace headroom
