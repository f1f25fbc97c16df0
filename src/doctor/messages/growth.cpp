#include "doctor/messages/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "doctor/messages/robust_statistics.h"

namespace headroom::doctor {
namespace {

std::string size_text(double bytes) {
  const double bounded = std::min(std::abs(bytes), 9e18);
  return (bytes < 0 ? "-" : "") + format_bytes(static_cast<int64_t>(bounded));
}

struct Series {
  std::vector<double> step, bytes, gap, tokens;
  std::vector<bool> event;
  bool has_gap = true, has_tokens = true;
};

// Drops the first tenth: there, caches, autotuning and optimizer states grow in every job.
Series settled(const std::vector<MemorySample>& samples) {
  Series series;
  double last = 0;
  for (size_t i = std::max<size_t>(1, samples.size() / 10); i < samples.size(); ++i) {
    const MemorySample& sample = samples[i];
    // After a restart the step count continues from its last value.
    const double step = series.step.empty() || sample.step > last ? sample.step : last + 1;
    last = step;
    series.step.push_back(step);
    series.bytes.push_back(static_cast<double>(sample.bytes));
    series.event.push_back(sample.after_event);
    series.has_gap = series.has_gap && sample.reserved_bytes.has_value();
    series.has_tokens = series.has_tokens && sample.tokens.has_value();
    series.gap.push_back(static_cast<double>(sample.reserved_bytes.value_or(sample.bytes) - sample.bytes));
    series.tokens.push_back(sample.tokens.value_or(0));
  }
  return series;
}

// A rise that is certain, large enough, and continues in the second half (a warm-up does not).
bool rises(const std::vector<double>& x, const std::vector<double>& y, double scale, Trend& trend) {
  trend = theil_sen(x, y);
  if (trend.score < 3 || trend.rise < 0.01 * scale || trend.rise < 2 * trend.noise) return false;
  const auto half = static_cast<std::ptrdiff_t>(x.size() / 2);
  const Trend second = theil_sen({x.begin() + half, x.end()}, {y.begin() + half, y.end()});
  return second.slope > 0.3 * trend.slope && second.score > 1;
}

bool fragmentation(const Series& s, double middle, Growth& growth) {
  if (!s.has_gap) return false;
  Trend gap;
  if (!rises(s.step, s.gap, middle, gap)) return false;
  const Trend allocated = theil_sen(s.step, s.bytes);
  if (allocated.rise > 0.5 * gap.rise) return false;
  growth.kind = GrowthKind::fragmentation;
  growth.bytes_per_step = gap.slope;
  growth.evidence.push_back(
      fmt::format("reserved but unallocated memory grew by {} while allocated memory changed by {}",
                  size_text(gap.rise), size_text(allocated.rise)));
  return true;
}

bool follows_length(const Series& s, Growth& growth) {
  if (!s.has_tokens) return false;
  const double correlation = rank_correlation(s.tokens, s.bytes);
  if (correlation < 0.7) return false;
  // The slope over tokens. What it leaves unexplained must not rise over time.
  std::vector<size_t> order(s.tokens.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return s.tokens[a] < s.tokens[b]; });
  std::vector<double> x, y;
  for (const size_t i : order) {
    x.push_back(s.tokens[i]);
    y.push_back(s.bytes[i]);
  }
  const Trend by_length = theil_sen(x, y);
  std::vector<double> rest(s.bytes.size());
  for (size_t i = 0; i < rest.size(); ++i) rest[i] = s.bytes[i] - by_length.slope * s.tokens[i];
  Trend left;
  if (rises(s.step, rest, std::abs(by_length.rise), left) && left.rise > 0.5 * by_length.rise) return false;
  growth.kind = GrowthKind::length;
  growth.bytes_per_token = by_length.slope;
  growth.evidence.push_back(fmt::format("memory follows the batch's tokens (rank correlation {:.2f}): {} per token",
                                        correlation, size_text(by_length.slope)));
  return true;
}

bool leak(const Series& s, double middle, std::optional<int64_t> capacity, Growth& growth) {
  Trend trend;
  if (!rises(s.step, s.bytes, middle, trend)) return false;
  growth.kind = GrowthKind::leak;
  growth.bytes_per_step = trend.slope;
  growth.evidence.push_back(fmt::format("memory rose by {} over {:.0f} steps, {} per step, to the end (z = {:.1f})",
                                        size_text(trend.rise), s.step.back() - s.step.front(), size_text(trend.slope),
                                        trend.score));
  if (capacity && trend.slope > 0) {
    growth.steps_left = std::max(0.0, (static_cast<double>(*capacity) - s.bytes.back()) / trend.slope);
    growth.evidence.push_back(
        fmt::format("{} are reached in about {:.0f} more steps", format_bytes(*capacity), *growth.steps_left));
  }
  return true;
}

bool periodic(const Series& s, double middle, Growth& growth) {
  std::vector<double> deviations;
  for (const double bytes : s.bytes) deviations.push_back(std::abs(bytes - middle));
  const double threshold = middle + std::max(6 * median(deviations), 0.03 * middle);
  std::vector<double> peaks;  // steps at which a run above the threshold begins
  size_t at_events = 0, above = 0;
  for (size_t i = 0; i < s.bytes.size(); ++i) {
    if (s.bytes[i] <= threshold) continue;
    ++above;
    if (i > 0 && s.bytes[i - 1] > threshold) continue;
    peaks.push_back(s.step[i]);
    at_events += s.event[i] || (i + 1 < s.event.size() && s.event[i + 1]) ? 1 : 0;
  }
  if (peaks.size() < 2 || above * 2 > s.bytes.size()) return false;
  std::vector<double> distances;
  for (size_t i = 1; i < peaks.size(); ++i) distances.push_back(peaks[i] - peaks[i - 1]);
  const double distance = median(distances);
  std::vector<double> spread;
  for (const double d : distances) spread.push_back(std::abs(d - distance));
  const bool regular = peaks.size() >= 3 && median(spread) <= 0.15 * distance &&
                       *std::max_element(spread.begin(), spread.end()) <= 0.6 * distance;
  const bool events = at_events * 10 >= peaks.size() * 7;
  if (!regular && !events) return false;
  growth.kind = GrowthKind::periodic;
  growth.period_steps = distance;
  const double highest = *std::max_element(s.bytes.begin(), s.bytes.end());
  growth.evidence.push_back(fmt::format("{} peaks up to {} above the median {}, every {:.0f} steps", peaks.size(),
                                        size_text(highest - middle), size_text(middle), distance));
  if (events)
    growth.evidence.push_back(fmt::format("{} of {} peaks come with an evaluation or a save", at_events, peaks.size()));
  return true;
}

// Without token counts: large swings from sample to sample, without trend or period.
bool varies(const Series& s, double middle, Growth& growth) {
  if (s.has_tokens) return false;
  std::vector<double> jumps;
  for (size_t i = 1; i < s.bytes.size(); ++i) jumps.push_back(std::abs(s.bytes[i] - s.bytes[i - 1]));
  if (median(jumps) < 0.03 * middle) return false;
  growth.kind = GrowthKind::length;
  growth.evidence.push_back(
      fmt::format("memory changes by {} from sample to sample without trend or period, as with batches"
                  " of different length",
                  size_text(median(jumps))));
  return true;
}

}  // namespace

const char* growth_name(GrowthKind kind) {
  switch (kind) {
    case GrowthKind::steady:
      return "steady";
    case GrowthKind::leak:
      return "leak";
    case GrowthKind::length:
      return "length";
    case GrowthKind::periodic:
      return "periodic";
    case GrowthKind::fragmentation:
      return "fragmentation";
    case GrowthKind::unknown:
      break;
  }
  return "unknown";
}

Growth analyse_growth(const std::vector<MemorySample>& samples, std::optional<int64_t> capacity_bytes) {
  Growth growth;
  growth.samples = static_cast<int64_t>(samples.size());
  if (samples.empty()) return growth;
  growth.first_bytes = samples.front().bytes;
  for (const MemorySample& sample : samples) growth.peak_bytes = std::max(growth.peak_bytes, sample.bytes);
  if (samples.size() < Growth::kLeastSamples) return growth;
  const Series series = settled(samples);
  const double middle = median(series.bytes);
  growth.median_bytes = static_cast<int64_t>(middle);
  growth.kind = GrowthKind::steady;
  if (fragmentation(series, middle, growth) || follows_length(series, growth) ||
      leak(series, middle, capacity_bytes, growth) || periodic(series, middle, growth) ||
      varies(series, middle, growth)) {
    return growth;
  }
  growth.evidence.push_back(fmt::format("{} samples stay around {}", samples.size(), size_text(middle)));
  return growth;
}

}  // namespace headroom::doctor
