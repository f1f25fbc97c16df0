// How a job's memory develops over time: it leaks, follows the length of the batches, peaks at evaluations or saves, or
// fragments. Uses robust statistics only: the Theil-Sen slope, the Mann-Kendall test, medians and rank correlation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::doctor {

struct MemorySample {
  double step = 0;    // the program's own count if it prints one, else the sample's number
  int64_t bytes = 0;  // allocated, or whatever the log calls memory
  std::optional<int64_t> reserved_bytes;
  std::optional<double> tokens;  // of the batch: length or token count
  bool after_event = false;      // an evaluation or a save was logged since the previous sample
};

enum class GrowthKind {
  unknown,        // fewer than kLeastSamples samples
  steady,         // none of the below
  leak,           // rises linearly to the end, whatever the batches are
  length,         // follows the batch's tokens; without token counts: varies widely, without trend or period
  periodic,       // peaks at regular intervals, or at evaluations and saves
  fragmentation,  // reserved but unallocated memory grows, allocated memory does not
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
  std::optional<double> steps_left;       // leak: until the `capacity_bytes` of analyse_growth is reached
  std::vector<std::string> evidence;      // one line each, with figures
};

// `samples` in order of time. O(n log n + 300^2). A pure function; thread-safe.
Growth analyse_growth(const std::vector<MemorySample>& samples, std::optional<int64_t> capacity_bytes = std::nullopt);

}  // namespace headroom::doctor
