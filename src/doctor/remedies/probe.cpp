#include "doctor/remedies/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "doctor/remedies/balance.h"
#include "formats/json.h"

namespace headroom::doctor {
namespace {

int64_t figure_in(const Json& json, const char* name) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_number()) return 0;
  const double value = at->get<double>();
  return value > 0 && value < 9e18 ? static_cast<int64_t>(value) : 0;
}

// The stage if it is one that the script prints, else empty.
std::string known_stage(const std::string& stage) {
  for (const char* known : {"start", "forward", "backward", "optimizer_step"})
    if (stage == known) return stage;
  return {};
}

}  // namespace

std::vector<ProbePoint> read_probe(const std::string& text, const std::string& source) {
  std::vector<ProbePoint> points;
  std::set<double> batches;
  size_t begin = 0;
  while (begin < text.size() && points.size() < 4096) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t brace = line.find('{');
    if (brace == std::string::npos || line.size() > 65536) continue;
    const Json json = Json::parse(line.substr(brace), nullptr, false);
    if (!json.is_object() || !json.contains("batch") || !json["batch"].is_number()) continue;
    ProbePoint point{json["batch"].get<double>(),
                     figure_in(json, "peak_bytes"),
                     figure_in(json, "reserved_bytes"),
                     figure_in(json, "outside_bytes"),
                     {}};
    if (json.contains("stage") && json["stage"].is_string())
      point.stage = known_stage(json["stage"].get<std::string>());
    if (!(point.batch > 0) || point.batch > 1e9 || point.peak_bytes <= 0) continue;
    points.push_back(point);
    batches.insert(point.batch);
  }
  if (batches.size() < 2)
    throw Error(ErrorKind::format, fmt::format("{}: {} batch sizes measured, two are needed", source, batches.size()),
                "run the script that --probe prints, and give its whole output");
  return points;
}

ProbeFit fit_probe(const std::vector<ProbePoint>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, outside = 0;
  const auto peak = [](const ProbePoint& point) {
    return static_cast<double>(std::max(point.peak_bytes, point.reserved_bytes));
  };
  for (const ProbePoint& point : points) {
    n += 1;
    x += point.batch;
    y += peak(point);
    xx += point.batch * point.batch;
    xy += point.batch * peak(point);
    outside = std::max(outside, static_cast<double>(point.outside_bytes));
  }
  const double spread = n * xx - x * x;
  HR_CHECK(spread > 0, "all batches are equal");
  ProbeFit fit;
  fit.per_sample_bytes = std::max(0.0, (n * xy - x * y) / spread);
  fit.fixed_bytes = (y - fit.per_sample_bytes * x) / n;
  for (const ProbePoint& point : points)
    fit.residual_bytes =
        std::max(fit.residual_bytes, std::abs(peak(point) - fit.fixed_bytes - fit.per_sample_bytes * point.batch));
  fit.fixed_bytes += outside;
  return fit;
}

std::string stage_of_peak(const std::vector<ProbePoint>& points) {
  const auto last = std::max_element(points.begin(), points.end(),
                                     [](const ProbePoint& a, const ProbePoint& b) { return a.batch < b.batch; });
  return last == points.end() ? std::string() : last->stage;
}

int64_t largest_batch(const ProbeFit& fit, int64_t capacity_bytes) {
  constexpr double kMost = 1 << 20;
  const double room = kFitShare * static_cast<double>(capacity_bytes) - fit.fixed_bytes;
  if (room < fit.per_sample_bytes || room < 0) return 0;
  if (fit.per_sample_bytes * kMost <= room) return static_cast<int64_t>(kMost);
  return static_cast<int64_t>(room / fit.per_sample_bytes);
}

}  // namespace headroom::doctor
