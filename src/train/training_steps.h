// Optimizer steps over the training data.
#pragma once

#include "base/process_memory.h"
#include "data/batch_reader.h"
#include "optim/step_scalars.h"
#include "plan/bucket_programs.h"
#include "runtime/executor.h"
#include "train/checkpoint.h"
#include "train/measured_steps.h"
#include "train/options.h"
#include "train/run_data.h"
#include "train/run_events.h"

namespace headroom {

class TrainingSteps {
 public:
  // For a run of `total_steps` over `data`, whose rows become `targets`. References must outlive it.
  TrainingSteps(const TrainOptions& options, Executor& executor, BatchPort& port, const SequenceSet& data,
                const RowTargets& targets, bool classifies, int64_t total_steps);

  // Runs the step after state.step, which it advances. No heap call except in the first two steps and the last. Throws
  // Error(run) if the device fails.
  StepReport run(RunState& state);

  int64_t total() const { return total_; }
  // The highest resident set of the process so far.
  RecordedPeak& peak() { return peak_; }

 private:
  void estimate_curvature(const std::string& program, std::span<const Trips> trips, StepScalars scalars,
                          int64_t targets);
  const std::string& program_of(int64_t step, const SampleRange& range) const;
  StepReport report_of(int64_t step, const std::string& program, double rate, double loss_scale) const;

  const TrainOptions& options_;
  OptimizerSettings optimizer_;
  Executor& executor_;
  BatchPort& port_;
  const SequenceSet& data_;
  bool classifies_;
  int64_t total_;
  BatchReader reader_;
  BucketPrograms programs_;
  MeasuredSteps measured_;
  RecordedPeak peak_;
};

}  // namespace headroom
