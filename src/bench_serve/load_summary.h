// The results of a load: what was served, how fast, what failed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench_serve/load_run.h"

namespace headroom::bench {

// Sorted values, seconds.
class Distribution {
 public:
  explicit Distribution(std::vector<double> values);
  bool empty() const { return values_.empty(); }
  size_t count() const { return values_.size(); }
  double mean() const { return mean_; }
  double deviation() const;  // of the population
  // Interpolates linearly between the two nearest values; `share` is from 0 to 1. 0 without values.
  double quantile(double share) const;
  double most() const { return quantile(1); }

 private:
  std::vector<double> values_;
  double mean_ = 0;
};

// Names and keys are those of vLLM's `bench serve`.
struct LatencyMetric {
  const char* name;        // "Time to First Token"
  const char* short_name;  // "TTFT"
  const char* key;         // "ttft"
  Distribution values;
};

struct LoadSummary {
  LoadOptions options;
  std::string date;  // UTC, "2026-01-31T12:00:00Z"
  double seconds = 0;
  bool stopped = false;
  int64_t most_running = 0;
  std::array<int64_t, kOutcomeNames.size()> outcomes{};  // indexed by Outcome
  int64_t refused_with_retry_after = 0;
  std::map<std::string, int64_t> messages;      // of failures, with their counts; the first 20
  int64_t input_tokens = 0, output_tokens = 0;  // of completed requests
  bool counted = true;  // the server reported usage for every completed request; else pieces of text count as tokens
  std::vector<LatencyMetric> latencies;  // of completed requests: TTFT, TPOT, ITL, E2EL
  std::vector<LoadSample> samples;
  std::string memory_name;  // empty: no memory was watched
  int64_t memory_peak = 0;
  std::optional<int64_t> kills;

  int64_t count(Outcome outcome) const { return outcomes[static_cast<size_t>(outcome)]; }
  int64_t total() const;
  int64_t completed() const { return count(Outcome::completed); }
  int64_t failed() const { return total() - completed(); }
  // Per second of the load; 0 for an empty one.
  double rate(int64_t amount) const { return seconds > 0 ? static_cast<double>(amount) / seconds : 0; }
};

LoadSummary summarise(const LoadOptions& options, const LoadResult& result, const MemoryWatch* memory);

// A table like vLLM's.
std::string summary_table(const LoadSummary& summary);
// One JSON object with vLLM's keys, and headroom's "failures", "memory" and "timeline". docs/bench_serve.md
std::string summary_json(const LoadSummary& summary);
// A self-contained page: figures, distributions of latencies, and a timeline.
std::string summary_page(const LoadSummary& summary);

}  // namespace headroom::bench
