// metrics.jsonl and run.json.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "train/run_events.h"

namespace headroom {

// Appends lines without heap calls.
class Metrics {
 public:
  // Opens for appending. Throws Error(run).
  explicit Metrics(const std::filesystem::path& path);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();
  void step(const StepReport& report);
  // `set`: the name of the evaluated set, at most 64 bytes without quotes; empty for all sets.
  void evaluation(int64_t step, const EvaluationResult& result, std::string_view set);
  void sync();

 private:
  void write(size_t bytes);
  int descriptor_ = -1;
  std::array<char, 640> line_{};
};

// Why a run ended before its last step.
struct EarlyStop {
  int64_t evaluations = 0;  // in a row without a lower loss
  int64_t best_step = 0;    // of the lowest; 0: none was finite
  double best_eval_loss = 0;
};

struct RunSummary {
  int64_t arena_planned_bytes = 0;
  int64_t arena_measured_bytes = 0;
  int64_t disk_planned_bytes = 0;  // of the scratch file
  int64_t disk_measured_bytes = 0;
  std::optional<int64_t> device_outside_arena_bytes;  // at the end, as in DeviceMemory
  int64_t process_peak_rss_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t started_unix_ms = 0;  // of process.json: the start to which this end belongs
  int64_t steps = 0;
  int64_t total_steps = 0;
  int stopped_by = 0;  // the signal, or 0
  std::optional<EarlyStop> early_stop;
};
void write_run_json(const std::filesystem::path& path, const RunSummary& summary);

}  // namespace headroom
