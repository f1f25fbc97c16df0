// The two steps of a run that are measured kernel by kernel: measured.json and operations.json.
#pragma once

#include <filesystem>
#include <memory>

#include "base/process_memory.h"
#include "plan/plan.h"
#include "runtime/executor.h"
#include "train/step_probe.h"

namespace headroom {

// Memory in the first step, time in the second. Allocates when made and when it writes.
class MeasuredSteps {
 public:
  // Of the plan's program "train_step"; the files go to `directory`.
  MeasuredSteps(const Plan& plan, std::filesystem::path directory);

  // Before a step of `trips` micro-batches that runs the measured program: follows its kernels, while there is
  // something left to measure.
  void begin(Executor& executor, int64_t trips);
  // After it. Where all is measured, or the run ends with this step, writes the files and counts what was resident
  // into `peak`. Throws Error(run) on I/O errors.
  void end(Executor& executor, bool last, RecordedPeak& peak);

 private:
  const PlanProgram& program_;
  std::filesystem::path directory_;
  std::unique_ptr<StepProbe> probe_;  // until the files are written
  int steps_ = 0;
};

}  // namespace headroom
