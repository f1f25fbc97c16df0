// The log of a run's steps and evaluations: metrics.jsonl, and TensorBoard's event files if requested.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/event_file.h"
#include "train/metrics.h"
#include "train/options.h"

namespace headroom {

// Steps are appended without heap calls.
class RunLog {
 public:
  // In `directory`; the run starts or continues at `first_step`. Throws Error(run).
  RunLog(const ReportingOptions& reporting, const std::filesystem::path& directory, int64_t first_step);

  // Writes the steps selected by --logging-steps, and the last. Throws Error(run) on I/O errors, as the next two.
  void step(const StepReport& report);
  // `set`: the evaluated set's name; empty for all sets.
  void evaluation(int64_t step, const std::string& set, const EvaluationResult& result);
  // Syncs what was written to disk.
  void sync() { metrics_.sync(); }

 private:
  void step_events(const StepReport& report);

  int64_t logging_steps_;
  Metrics metrics_;
  std::optional<EventFile> events_;
};

}  // namespace headroom
