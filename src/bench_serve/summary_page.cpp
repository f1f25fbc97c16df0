#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/bytes.h"
#include "base/count_text.h"
#include "bench_serve/load_summary.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/series.h"

namespace headroom::bench {
namespace {

using report::Chart;
using report::escaped;
using report::Series;

constexpr int kCurvePoints = 100;

std::string fact(std::string_view name, const std::string& value, const std::string& more = "") {
  return fmt::format("<div><dt>{}</dt><dd>{} <small>{}</small></dd></div>\n", name, escaped(value), escaped(more));
}

std::string number(double value) {
  return value >= 1e4 ? format_count(std::llround(value)) : fmt::format("{:.4g}", value);
}

std::string head_of(const LoadSummary& s) {
  std::string out = fmt::format("<h1>{} at {}</h1>\n", escaped(s.options.model), escaped(s.options.base_url));
  if (s.stopped) out += "<p class=\"bad\">Stopped before its end.</p>\n";
  out += "<dl class=\"facts\">\n";
  out += fact("completed", format_count(s.completed()), fmt::format("of {} requests", s.total()));
  out += fact("requests a second", number(s.rate(s.completed())));
  out += fact("output tokens a second", number(s.rate(s.output_tokens)), s.counted ? "" : "pieces of text");
  out += fact("input tokens", format_count(s.input_tokens));
  out += fact("output tokens", format_count(s.output_tokens));
  out += fact("duration", report::duration(s.seconds));
  out += fact("at once", format_count(s.most_running), "at most");
  if (!s.memory_name.empty()) out += fact("peak memory", format_bytes(s.memory_peak), s.memory_name);
  if (s.kills) out += fact("killed for memory", std::to_string(*s.kills));
  return out + "</dl>\n";
}

// The share of requests, or of pieces of text, with at most this latency.
std::string latency_chart(const LatencyMetric& metric) {
  const Distribution& d = metric.values;
  std::string out = fmt::format("<h3>{}</h3>\n", metric.name);
  if (d.empty()) return out + "<p class=\"soft\">None was measured.</p>\n";
  // The slowest hundredth is cut off if it would squeeze the others.
  const double most = std::min(d.most(), 4 * d.quantile(0.99));
  Chart chart(fmt::format("share that took no longer, {}", metric.name), {0, std::max(most, 1e-6)}, {0, 1}, true);
  Chart::Points points{{std::min(d.quantile(0), most), 0}};
  for (int i = 0; i <= kCurvePoints; ++i) {
    const double share = static_cast<double>(i) / kCurvePoints;
    points.emplace_back(std::min(d.quantile(share), most), share);
  }
  chart.line(points, "stroke=\"#0072b2\" stroke-width=\"2\"");
  for (const auto& [name, share] : {std::pair{"median", 0.5}, {"p90", 0.9}, {"p99", 0.99}})
    chart.mark(d.quantile(share), share, "#d55e00", fmt::format("{} {}", name, report::duration(d.quantile(share))));
  return out +
         fmt::format("<p class=\"soft small\">median {}, p90 {}, p99 {}, longest {}</p>\n",
                     report::duration(d.quantile(0.5)), report::duration(d.quantile(0.9)),
                     report::duration(d.quantile(0.99)), report::duration(d.most())) +
         chart.html(
             report::duration, false, [](double share) { return fmt::format("{:.0f} %", share * 100); }, false);
}

// A value of the samples over time.
std::string time_chart(const LoadSummary& s, const std::string& title, const char* colour,
                       const std::function<double(size_t)>& figure, bool bytes) {
  Series series;
  for (size_t i = 0; i < s.samples.size(); ++i) series.add(s.samples[i].time, figure(i));
  if (series.points().size() < 2) return {};
  Chart::Points points, ground;
  for (const Series::Point& point : series.points()) points.emplace_back(point.x, point.mean());
  for (const auto& [x, y] : points) ground.emplace_back(x, 0);
  Chart chart(title + " by time", {0, std::max(points.back().first, 1e-3)}, {0, 1.08 * std::max(1e-6, series.most())},
              true);
  chart.area(ground, points, std::string(colour) + "40");
  chart.line(points, fmt::format("stroke=\"{}\" stroke-width=\"2\"", colour));
  const Chart::Label amount =
      bytes
          ? Chart::Label([](double at) { return at == 0 ? std::string("0") : format_bytes(static_cast<int64_t>(at)); })
          : Chart::Label(number);
  return "<h3>" + title + "</h3>\n" +
         chart.html([](double at) { return fmt::format("{:.4g} s", at); }, false, amount, bytes);
}

std::string timeline_of(const LoadSummary& s) {
  const auto& samples = s.samples;
  // Pieces of text per second since the previous sample.
  const auto rate = [&](size_t i) {
    if (i == 0) return 0.0;
    const double seconds = samples[i].time - samples[i - 1].time;
    return seconds > 0 ? static_cast<double>(samples[i].pieces - samples[i - 1].pieces) / seconds : 0;
  };
  std::string out = "<h2>What happened when</h2>\n";
  out += time_chart(s, "Pieces of text a second", "#009e73", rate, false);
  out += time_chart(
      s, "Requests in progress", "#0072b2", [&](size_t i) { return static_cast<double>(samples[i].running); }, false);
  if (s.failed() > 0)
    out += time_chart(
        s, "Failures so far", "#d55e00", [&](size_t i) { return static_cast<double>(samples[i].failed); }, false);
  if (!s.memory_name.empty())
    out += time_chart(
        s, "Memory", "#cc79a7", [&](size_t i) { return static_cast<double>(samples[i].memory); }, true);
  return out;
}

std::string latency_table(const LoadSummary& s) {
  std::vector<std::vector<std::string>> rows;
  for (const LatencyMetric& metric : s.latencies) {
    const Distribution& d = metric.values;
    std::vector<std::string> row{fmt::format("{} <span class=\"soft\">{}</span>", metric.name, metric.short_name)};
    for (const double value : {d.mean(), d.quantile(0.5), d.quantile(0.9), d.quantile(0.99)})
      row.push_back(d.empty() ? "" : report::duration(value));
    rows.push_back(std::move(row));
  }
  return report::table({"", "mean", "median", "p90", "p99"}, rows);
}

std::string failures_of(const LoadSummary& s) {
  std::string out = "<h2>Failures</h2>\n";
  if (s.failed() == 0) return out + "<p class=\"good\">None.</p>\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [message, count] : s.messages) rows.push_back({escaped(message), std::to_string(count)});
  if (s.count(Outcome::refused) > 0)
    out += fmt::format("<p>Refused: {}, of these {} with Retry-After.</p>\n", s.count(Outcome::refused),
                       s.refused_with_retry_after);
  return out + report::table({"", "requests"}, rows);
}

std::string settings_of(const LoadSummary& s) {
  const LoadOptions& o = s.options;
  const std::string rate = std::isinf(o.request_rate) ? "inf" : fmt::format("{:g}", o.request_rate);
  std::vector<std::vector<std::string>> rows{
      {"endpoint", path_of(o.endpoint)},
      {"request rate", rate + (o.burstiness == 1 ? "" : fmt::format(", burstiness {:g}", o.burstiness))},
      {"requests at once", o.max_concurrency > 0 ? std::to_string(o.max_concurrency) : "any number"},
      {"seed", std::to_string(o.seed)}};
  if (o.dataset.empty())
    rows.push_back({"tokens of prompt and answer", fmt::format("{} and {}, +- {:g} %", o.random_input_len,
                                                               o.random_output_len, 100 * o.random_range_ratio)});
  else
    rows.push_back({"requests from", escaped(o.dataset.string())});
  return "<h2>The load</h2>\n" + report::table({"", ""}, rows);
}

}  // namespace

std::string summary_page(const LoadSummary& s) {
  std::string out = report::page_head("headroom bench-serve") + head_of(s);
  out += "<h2>Latencies</h2>\n" + latency_table(s);
  out +=
      "<p class=\"soft small\">The charts show the share of requests, of the inter-token latency the share of pieces "
      "of "
      "text, that took no longer; dots are the median, p90 and p99.</p>\n";
  for (const LatencyMetric& metric : s.latencies) out += latency_chart(metric);
  out += timeline_of(s) + failures_of(s) + settings_of(s);
  return out + fmt::format("<p class=\"soft small\">headroom {}, {}</p>\n</body></html>\n", HEADROOM_VERSION, s.date);
}

}  // namespace headroom::bench
