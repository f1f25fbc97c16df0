// How a job's memory develops: leaking, following the length of its batches, peaking at evaluations or saves, or
// fragmenting. Robust statistics only: Theil and Sen's slope, Mann and Kendall's test, medians and rank correlation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::doctor {

struct MemorySample {
  double step = 0;    // the program's own count where it prints one, else the number of the sample
  int64_t bytes = 0;  // allocated, or whatever the log calls memory
  std::optional<int64_t> reserved_bytes;
  std::optional<double> tokens;  // of the batch: length or token count
  bool after_event = false;      // an evaluation or a save was logged since the sample before
};

enum class GrowthKind {
  unknown,        // fewer than kLeastSamples samples
  steady,         // neither of the below
  leak,           // rises linearly to the end, whatever the batches
  length,         // follows the batch's tokens; without token counts: varies widely without trend or period
  periodic,       // peaks at regular distances, or at evaluations and saves
  fragmentation,  // what is reserved but not allocated grows, what is allocated does not
};
const char* growth_name(GrowthKind kind);

struct Growth {
  static constexpr size_t kLeastSamples = 10;

  GrowthKind kind = GrowthKind::unknown;
  int64_t samples = 0;
  int64_t first_bytes = 0, median_bytes = 0, peak_bytes = 0;
  double bytes_per_step = 0;              // leak, fragmentation: Theil-Sen slope
  std::optional<double> bytes_per_token;  // length
  std::optional<double> period_steps;     // periodic
  std::optional<double> steps_left;       // leak: until `capacity_bytes` given to analyse_growth is reached
  std::vector<std::string> evidence;      // one line each, with figures
};

// `samples` in order of time. O(n log n + 300^2). Pure; thread-safe.
Growth analyse_growth(const std::vector<MemorySample>& samples, std::optional<int64_t> capacity_bytes = std::nullopt);

}  // namespace headroom::doctor
