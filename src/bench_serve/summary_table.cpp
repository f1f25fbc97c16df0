#include <fmt/format.h>

#include <cmath>

#include "base/bytes.h"
#include "bench_serve/load_summary.h"

namespace headroom::bench {
namespace {

constexpr int kWidth = 50;

std::string line(const std::string& name, const std::string& value) {
  return fmt::format("{:<40} {:<10}\n", name + ":", value);
}

std::string count_line(const std::string& name, int64_t value) { return line(name, std::to_string(value)); }
std::string rate_line(const std::string& name, double value) { return line(name, fmt::format("{:.2f}", value)); }

std::string failures(const LoadSummary& s) {
  constexpr const char* kNames[] = {"",
                                    "Refused (503, 429)",
                                    "Client errors (4xx)",
                                    "Server errors",
                                    "Broken streams",
                                    "Timeouts",
                                    "Without an answer",
                                    "Cancelled"};
  std::string out;
  for (size_t i = 1; i < s.outcomes.size(); ++i) {
    if (s.outcomes[i] == 0) continue;
    out += count_line(std::string("  ") + kNames[i], s.outcomes[i]);
    if (static_cast<Outcome>(i) == Outcome::refused)
      out += count_line("    of these with Retry-After", s.refused_with_retry_after);
  }
  return out;
}

std::string latency(const LatencyMetric& metric) {
  const Distribution& d = metric.values;
  std::string out = fmt::format("{:-^{}}\n", metric.name, kWidth);
  const auto row = [&](const char* what, double seconds) {
    out += rate_line(fmt::format("{} {} (ms)", what, metric.short_name), seconds * 1000);
  };
  row("Mean", d.mean());
  row("Median", d.quantile(0.5));
  row("P90", d.quantile(0.9));
  row("P99", d.quantile(0.99));
  return out;
}

std::string memory(const LoadSummary& s) {
  if (s.memory_name.empty()) return {};
  std::string out = fmt::format("{:-^{}}\n", "Memory of " + s.memory_name, kWidth);
  out += line("Peak", format_bytes(s.memory_peak));
  if (s.kills) out += count_line("Processes killed for memory", *s.kills);
  return out;
}

std::string messages(const LoadSummary& s) {
  std::string out;
  for (const auto& [message, count] : s.messages) out += fmt::format("{} x {}\n", count, message);
  return out.empty() ? out : fmt::format("{:-^{}}\n", "Failures", kWidth) + out;
}

}  // namespace

std::string summary_table(const LoadSummary& s) {
  const LoadOptions& o = s.options;
  std::string out = fmt::format("{:=^{}}\n", " Serving Benchmark Result ", kWidth);
  out += count_line("Successful requests", s.completed()) + count_line("Failed requests", s.failed()) + failures(s);
  if (o.max_concurrency > 0) out += count_line("Maximum request concurrency", o.max_concurrency);
  if (!std::isinf(o.request_rate)) out += rate_line("Request rate configured (RPS)", o.request_rate);
  out += rate_line("Benchmark duration (s)", s.seconds) + count_line("Total input tokens", s.input_tokens) +
         count_line("Total generated tokens", s.output_tokens) +
         rate_line("Request throughput (req/s)", s.rate(s.completed())) +
         rate_line("Output token throughput (tok/s)", s.rate(s.output_tokens)) +
         rate_line("Total token throughput (tok/s)", s.rate(s.input_tokens + s.output_tokens)) +
         count_line("Peak concurrent requests", s.most_running);
  for (const LatencyMetric& metric : s.latencies) out += latency(metric);
  out += memory(s) + messages(s) + std::string(kWidth, '=') + "\n";
  if (!s.counted) out += "note: the server does not count tokens: pieces of text are counted instead\n";
  if (s.stopped) out += "note: stopped before its end\n";
  return out;
}

}  // namespace headroom::bench
