// The two steps of a run in which each kernel is measured: measured.json and operations.json.
#pragma once

#include <filesystem>
#include <memory>

#include "base/process_memory.h"
#include "plan/plan.h"
#include "runtime/executor.h"
#include "train/step_probe.h"

namespace headroom {

// Measures memory in the first step, time in the second. Allocates in the constructor and when it writes.
class MeasuredSteps {
 public:
  // For the plan's program "train_step"; the files are written to `directory`.
  MeasuredSteps(const Plan& plan, std::filesystem::path directory);

  // Before a step of `trips` micro-batches that runs the measured program: follows its kernels as long as something
  // remains to be measured.
  void begin(Executor& executor, int64_t trips);
  // After it. Once everything is measured, or if the run ends with this step, writes the files and includes the
  // measured resident set in `peak`. Throws Error(run) on I/O errors.
  void end(Executor& executor, bool last, RecordedPeak& peak);

 private:
  const PlanProgram& program_;
  std::filesystem::path directory_;
  std::unique_ptr<StepProbe> probe_;  // until the files are written
  int steps_ = 0;
};

}  // namespace headroom
