#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {
namespace {

Chart::Points means(const Series& series) {
  Chart::Points out;
  for (const Series::Point& point : series.points()) out.emplace_back(point.x, point.mean());
  return out;
}

std::string step_label(double at) { return fmt::format("{:.0f}", at); }

Span steps_of(const Metrics& metrics) {
  return {metrics.loss.points().front().x,
          std::max(metrics.loss.points().back().x, metrics.loss.points().front().x + 1)};
}

// Merged points show how far their values reach.
void draw_reach(Chart& chart, const Series& series, const std::string& fill) {
  Chart::Points lower, upper;
  for (const Series::Point& point : series.points())
    lower.emplace_back(point.x, point.least), upper.emplace_back(point.x, point.most);
  if (std::any_of(series.points().begin(), series.points().end(), [](const auto& p) { return p.count > 1; }))
    chart.area(lower, upper, fill);
}

std::string loss_chart(const Metrics& metrics) {
  double least = metrics.loss.least(), most = metrics.loss.most();
  if (!metrics.eval_loss.empty())
    least = std::min(least, metrics.eval_loss.least()), most = std::max(most, metrics.eval_loss.most());
  const double air = 0.06 * std::max(1e-6, most - least);
  Chart chart("loss by step", steps_of(metrics), {least - air, most + air});
  draw_reach(chart, metrics.loss, "#0072b240");
  chart.line(means(metrics.loss), "stroke=\"#0072b2\" stroke-width=\"2\"");
  if (!metrics.eval_loss.empty()) {
    chart.line(means(metrics.eval_loss), "stroke=\"#d55e00\" stroke-width=\"2\"");
    for (const Series::Point& point : metrics.eval_loss.points())
      chart.mark(point.x, point.mean(), "#d55e00",
                 fmt::format("step {:.0f}: evaluation loss {:.4f}", point.x, point.mean()));
  }
  std::string out = "<h3>Loss</h3>\n<p class=\"legend\">\n" + swatch("#0072b2", "training");
  if (!metrics.eval_loss.empty()) out += swatch("#d55e00", "evaluation");
  return out + "</p>\n" +
         chart.html(
             step_label, false, [](double at) { return fmt::format("{:.4g}", at); }, false);
}

std::string sets_table(const Metrics& metrics) {
  if (metrics.eval_sets.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, line] : metrics.eval_sets)
    rows.push_back({escaped(name), fmt::format("{}", line.step), fmt::format("{:.4f}", line.loss),
                    fmt::format("{:.2f}", std::exp(line.loss))});
  return table({"evaluated on", "step", "loss", "perplexity"}, rows);
}

std::string rate_chart(const Metrics& metrics) {
  Chart chart("tokens a second by step", steps_of(metrics),
              {0, 1.08 * std::max(1e-6, metrics.tokens_per_second.most())}, true);
  draw_reach(chart, metrics.tokens_per_second, "#009e7340");
  chart.line(means(metrics.tokens_per_second), "stroke=\"#009e73\" stroke-width=\"2\"");
  return "<h3>Tokens a second</h3>\n" +
         chart.html(
             step_label, false,
             [](double at) { return at >= 1e4 ? count_of(static_cast<int64_t>(at)) : fmt::format("{:.4g}", at); },
             false);
}

std::string memory_chart(const Run& run) {
  if (run.metrics.resident.empty()) return "";
  const double peak = static_cast<double>(run.plan.peak), budget = static_cast<double>(run.plan.budget);
  const double top = std::max(peak, run.metrics.resident.most());
  const bool shows_budget = budget <= 1.6 * top;
  Chart chart("resident memory by step", steps_of(run.metrics),
              {0, 1.08 * (shows_budget ? std::max(top, budget) : top)}, true);
  chart.line(means(run.metrics.resident), "class=\"ink\" stroke-width=\"2\"");
  chart.level(peak, "class=\"soft-line\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"");
  if (shows_budget) chart.level(budget, "stroke=\"#d33\" stroke-width=\"1.5\"");
  return "<h3>Memory</h3>\n<p class=\"legend\">\n<span><i class=\"rule\"></i>resident set</span>\n" +
         level_swatches(shows_budget) + "</p>\n" +
         chart.html(
             step_label, false,
             [](double at) { return at == 0 ? std::string("0") : format_bytes(static_cast<int64_t>(at)); }, true);
}

}  // namespace

std::string curves_section(const Run& run) {
  const Metrics& metrics = run.metrics;
  std::string out = "<h2>The run</h2>\n";
  if (metrics.loss.empty()) return out + "<p class=\"soft\">No step is logged yet.</p>\n";
  out += fmt::format("<p>{} tokens in {} of steps", count_of(metrics.tokens), duration(metrics.seconds));
  if (!run.checkpoints.empty())
    out += fmt::format("; {} checkpoint{}, the newest at step {}", run.checkpoints.size(),
                       run.checkpoints.size() == 1 ? "" : "s", run.checkpoints.back());
  return out + ".</p>\n" + loss_chart(metrics) + sets_table(metrics) + rate_chart(metrics) + memory_chart(run);
}

}  // namespace headroom::report
