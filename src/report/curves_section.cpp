#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/bytes.h"
#include "base/count_text.h"
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

// Shades the range of the values of merged points.
void draw_reach(Chart& chart, const Series& series, const std::string& fill) {
  Chart::Points lower, upper;
  for (const Series::Point& point : series.points())
    lower.emplace_back(point.x, point.least), upper.emplace_back(point.x, point.most);
  if (std::any_of(series.points().begin(), series.points().end(), [](const auto& p) { return p.count > 1; }))
    chart.area(lower, upper, fill);
}

// A chart by step of a figure of training and, if there is any, of evaluation.
std::string learning_chart(const Metrics& metrics, const std::string& name, const Series& training,
                           const Series& evaluation) {
  double least = training.least(), most = training.most();
  if (!evaluation.empty()) least = std::min(least, evaluation.least()), most = std::max(most, evaluation.most());
  const double air = 0.06 * std::max(1e-6, most - least);
  std::string title = name;
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  Chart chart(name + " by step", steps_of(metrics), {least - air, most + air});
  draw_reach(chart, training, "#0072b240");
  chart.line(means(training), "stroke=\"#0072b2\" stroke-width=\"2\"");
  if (!evaluation.empty()) {
    chart.line(means(evaluation), "stroke=\"#d55e00\" stroke-width=\"2\"");
    for (const Series::Point& point : evaluation.points())
      chart.mark(point.x, point.mean(), "#d55e00",
                 fmt::format("step {:.0f}: evaluation {} {:.4f}", point.x, name, point.mean()));
  }
  std::string out = "<h3>" + title + "</h3>\n<p class=\"legend\">\n" + swatch("#0072b2", "training");
  if (!evaluation.empty()) out += swatch("#d55e00", "evaluation");
  return out + "</p>\n" +
         chart.html(
             step_label, false, [](double at) { return fmt::format("{:.4g}", at); }, false);
}

std::string sets_table(const Metrics& metrics) {
  if (metrics.eval_sets.empty()) return "";
  const bool accurate = !metrics.eval_accuracy.empty(), perplexed = !metrics.classifies();
  std::vector<std::string> head{"evaluated on", "step", "loss"};
  if (accurate) head.emplace_back("accuracy");
  if (perplexed) head.emplace_back("perplexity");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, line] : metrics.eval_sets) {
    rows.push_back({escaped(name), fmt::format("{}", line.step), fmt::format("{:.4f}", line.loss)});
    if (accurate) rows.back().push_back(line.accuracy ? fmt::format("{:.4f}", *line.accuracy) : "");
    if (perplexed) rows.back().push_back(fmt::format("{:.2f}", std::exp(line.loss)));
  }
  return table(head, rows);
}

std::string rate_chart(const Metrics& metrics) {
  const Series& rate = metrics.classifies() ? metrics.samples_per_second : metrics.tokens_per_second;
  const std::string unit = metrics.classifies() ? "samples" : "tokens";
  Chart chart(unit + " a second by step", steps_of(metrics), {0, 1.08 * std::max(1e-6, rate.most())}, true);
  draw_reach(chart, rate, "#009e7340");
  chart.line(means(rate), "stroke=\"#009e73\" stroke-width=\"2\"");
  return fmt::format("<h3>{} a second</h3>\n", metrics.classifies() ? "Samples" : "Tokens") +
         chart.html(
             step_label, false,
             [](double at) { return at >= 1e4 ? format_count(static_cast<int64_t>(at)) : fmt::format("{:.4g}", at); },
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
  out += fmt::format("<p>{} tokens in {} of steps", format_count(metrics.tokens), duration(metrics.seconds));
  if (!run.checkpoints.empty())
    out += fmt::format("; {} checkpoint{}, the newest at step {}", run.checkpoints.size(),
                       run.checkpoints.size() == 1 ? "" : "s", run.checkpoints.back());
  out += ".</p>\n" + learning_chart(metrics, "loss", metrics.loss, metrics.eval_loss);
  if (!metrics.accuracy.empty()) out += learning_chart(metrics, "accuracy", metrics.accuracy, metrics.eval_accuracy);
  return out + sets_table(metrics) + rate_chart(metrics) + memory_chart(run);
}

}  // namespace headroom::report
