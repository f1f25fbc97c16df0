// Follows metrics.jsonl: reads whole lines as they come, and the whole file again after a resumed run has truncated it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "report/series.h"

namespace headroom::report {

struct StepLine {
  int64_t step = 0;
  double loss = 0, grad_norm = 0, learning_rate = 0, seconds = 0, tokens_per_second = 0;
  int64_t tokens = 0;
  int64_t resident_bytes = 0;     // 0: not recorded
  double samples_per_second = 0;  // 0: the model predicts tokens, not classes
  std::optional<double> accuracy;
};

struct EvalLine {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy;
};

// What the lines so far contain.
struct Metrics {
  Series loss, tokens_per_second, resident, eval_loss, step_seconds;
  Series samples_per_second;       // of models that classify, else empty
  Series accuracy, eval_accuracy;  // of classes and masked tokens, else empty
  int64_t tokens = 0;
  double seconds = 0;
  int64_t lines = 0;
  std::optional<StepLine> last;
  std::optional<EvalLine> last_eval;
  std::map<std::string, EvalLine> eval_sets;  // the last of each set with a name; at most 64

  bool classifies() const { return !samples_per_second.empty(); }
};

class MetricsReader {
 public:
  explicit MetricsReader(std::filesystem::path path) : path_(std::move(path)) {}

  // Reads what was appended since the last call; returns whether there was anything. An incomplete line is left for the
  // next call. A missing file reads as empty. Throws Error(format) naming file and line.
  bool poll();
  const Metrics& metrics() const { return metrics_; }

 private:
  void take(std::string_view line);

  std::filesystem::path path_;
  Metrics metrics_;
  std::string partial_;
  int64_t offset_ = 0;
};

}  // namespace headroom::report
