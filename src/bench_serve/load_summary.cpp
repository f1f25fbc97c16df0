#include "bench_serve/load_summary.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

namespace headroom::bench {
namespace {

constexpr size_t kMostMessages = 20;

void add_latencies(const LoadResult& result, LoadSummary& summary) {
  std::vector<double> first, per_token, between, whole;
  for (const RequestRecord& record : result.records) {
    if (record.outcome != Outcome::completed) continue;
    whole.push_back(record.ended - record.begun);
    for (const float gap : record.gaps) between.push_back(gap);
    if (record.pieces == 0) continue;
    first.push_back(record.first - record.begun);
    if (record.tokens() > 1)
      per_token.push_back((record.last - record.first) / static_cast<double>(record.tokens() - 1));
  }
  summary.latencies.push_back({"Time to First Token", "TTFT", "ttft", Distribution(std::move(first))});
  summary.latencies.push_back(
      {"Time per Output Token (excl. 1st token)", "TPOT", "tpot", Distribution(std::move(per_token))});
  summary.latencies.push_back({"Inter-token Latency", "ITL", "itl", Distribution(std::move(between))});
  summary.latencies.push_back({"End-to-end Latency", "E2EL", "e2el", Distribution(std::move(whole))});
}

void add_record(const RequestRecord& record, LoadSummary& summary) {
  ++summary.outcomes[static_cast<size_t>(record.outcome)];
  summary.refused_with_retry_after += record.outcome == Outcome::refused && record.retry_after;
  if (record.outcome == Outcome::completed) {
    summary.input_tokens += std::max<int64_t>(0, record.input_tokens);
    summary.output_tokens += record.tokens();
    summary.counted = summary.counted && record.output_tokens >= 0;
    return;
  }
  std::string message = name_of(record.outcome);
  if (record.status > 0) message += fmt::format(" {}", record.status);
  message += ": " + record.message;
  if (summary.messages.size() < kMostMessages || summary.messages.contains(message)) ++summary.messages[message];
}

}  // namespace

Distribution::Distribution(std::vector<double> values) : values_(std::move(values)) {
  std::sort(values_.begin(), values_.end());
  if (!values_.empty())
    mean_ = std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

double Distribution::deviation() const {
  double sum = 0;
  for (const double value : values_) sum += (value - mean_) * (value - mean_);
  return values_.empty() ? 0 : std::sqrt(sum / static_cast<double>(values_.size()));
}

double Distribution::quantile(double share) const {
  if (values_.empty()) return 0;
  const double at = share * static_cast<double>(values_.size() - 1);
  const size_t below = static_cast<size_t>(at), above = std::min(below + 1, values_.size() - 1);
  return values_[below] + (at - static_cast<double>(below)) * (values_[above] - values_[below]);
}

int64_t LoadSummary::total() const { return std::accumulate(outcomes.begin(), outcomes.end(), int64_t{0}); }

LoadSummary summarise(const LoadOptions& options, const LoadResult& result, const MemoryWatch* memory) {
  LoadSummary summary;
  summary.options = options;
  summary.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  summary.seconds = result.seconds;
  summary.stopped = result.stopped;
  summary.most_running = result.most_running;
  summary.samples = result.samples;
  for (const RequestRecord& record : result.records) add_record(record, summary);
  add_latencies(result, summary);
  if (!memory) return summary;
  summary.memory_name = memory->name();
  summary.memory_peak = memory->peak();
  summary.kills = memory->kills();
  return summary;
}

}  // namespace headroom::bench
