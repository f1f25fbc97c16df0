// What a run left in its output directory, as records. docs/report.md lists the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/step_memory.h"
#include "report/metrics_reader.h"

namespace headroom::report {

// plan.json.
struct PlanFile {
  bool feasible = false;
  std::string model, profile, precision;
  int64_t budget = 0, peak = 0, minimum = 0, arena = 0, process = 0;
  int64_t parameters = 0, micro_batch = 0, accumulation = 0, seq_length = 0, threads = 0;
  double step_seconds = 0;
  std::vector<std::pair<std::string, int64_t>> phases;   // name, peak
  std::vector<std::pair<std::string, int64_t>> classes;  // of the arena at its peak
  std::vector<std::pair<std::string, int64_t>> parts;    // of the process outside the arena
  std::vector<std::pair<std::string, int64_t>> below;    // peaks of host and disk below the device's budget, if used
  std::vector<TechniqueReport> techniques;
  std::vector<TensorGroup> tensors;  // at the peak, without layers; empty where the file has none
};

// Why a run ended before its last step: evaluations in a row without a lower loss than the best.
struct EarlyEnd {
  int64_t evaluations = 0, best_step = 0;  // 0: no evaluation had a finite loss
  double best_loss = 0;

  // "no better evaluation loss in 3 evaluations, the best was 1.2345 at step 40"
  std::string reason() const;
};

// run.json, written at the end.
struct EndFile {
  int64_t arena_planned = 0, arena_measured = 0, peak_resident = 0, budget = 0;
  int64_t started_unix_ms = 0, steps = 0, total_steps = 0;  // 0: not recorded
  int64_t stopped_by = 0;
  std::optional<EarlyEnd> early;
};

// process.json, written at the start.
struct ProcessFile {
  int64_t pid = 0, start_ticks = 0, started_unix_ms = 0, first_step = 1, total_steps = 0;
  std::string host;
};

// memory.json.
struct MemoryFile {
  StepMemory step;
  std::vector<BudgetPoint> frontier;
};

// measured.json: by point of the timeline.
struct MeasuredFile {
  int32_t instructions = 0;
  std::vector<int64_t> resident;
  std::vector<double> seconds;
};

// A plan, as `plan --json` and `train` write it. Throws Error(format | usage) naming file and place.
PlanFile read_plan_file(const std::filesystem::path& file);

// Each reads one file of `directory`; nullopt if it is not there. Throw Error(format | usage) naming file and place.
std::optional<PlanFile> read_plan(const std::filesystem::path& directory);
std::optional<EndFile> read_end(const std::filesystem::path& directory);
std::optional<ProcessFile> read_process(const std::filesystem::path& directory);
std::optional<MemoryFile> read_memory(const std::filesystem::path& directory);
std::optional<MeasuredFile> read_measured(const std::filesystem::path& directory);

// data.json: the lengths of the rows before they were cut.
struct LengthsFile {
  struct Bin {
    int64_t up_to = 0;  // 0: any length
    int64_t rows = 0, tokens = 0;
  };
  struct Cut {
    int64_t length = 0, rows = 0, lost = 0;
  };
  int64_t rows = 0, tokens = 0;
  std::vector<Bin> bins;
  std::vector<Cut> cuts;
};

std::optional<LengthsFile> read_lengths(const std::filesystem::path& directory);

struct Run {
  std::filesystem::path directory;
  PlanFile plan;
  std::optional<EndFile> end;
  std::optional<ProcessFile> process;
  std::optional<MemoryFile> memory;
  std::optional<MeasuredFile> measured;  // only when it fits memory
  std::optional<LengthsFile> lengths;
  Metrics metrics;
  std::vector<int64_t> checkpoints;  // steps, ascending
};

// Throws Error(usage) if the directory holds no run.
Run read_run(const std::filesystem::path& directory);

}  // namespace headroom::report
