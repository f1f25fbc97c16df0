#include "report/budget_curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "report/markup.h"

namespace headroom::report {
namespace {

std::string bytes_label(double at) { return at == 0 ? "0" : format_bytes(static_cast<int64_t>(at)); }

}  // namespace

BudgetCurve::BudgetCurve(std::vector<BudgetPoint> points, int64_t chosen, std::string mark,
                         std::function<std::string(size_t)> link)
    : points_(std::move(points)), budget_(chosen), mark_(std::move(mark)), link_(std::move(link)) {
  std::sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
  const double least = static_cast<double>(points_.front().peak_bytes),
               most = static_cast<double>(points_.back().peak_bytes);
  const double budget = static_cast<double>(budget_), air = std::max(0.08 * (most - least), 0.02 * most);
  shown_ = {std::max(0.0, least - air), most + air};
  beyond_ = budget > shown_.most;
  if (!beyond_ && budget < shown_.least) shown_.least = 0.98 * budget;
}

std::string BudgetCurve::seconds() const {
  double slowest = 0;
  for (const BudgetPoint& point : points_) slowest = std::max(slowest, point.step_seconds);
  Chart chart("predicted seconds of a step by budget", shown_, {0, 1.1 * std::max(1e-9, slowest)});
  draw(chart, "#0072b2", [](const BudgetPoint& point) { return point.step_seconds; });
  return chart.html(
      bytes_label, true, [](double at) { return at == 0 ? std::string("0") : duration(at); }, false);
}

std::string BudgetCurve::peaks() const {
  Chart chart("planned peak by budget", shown_, {0, 1.1 * static_cast<double>(points_.back().peak_bytes)}, true);
  draw(chart, "#009e73", [](const BudgetPoint& point) { return static_cast<double>(point.peak_bytes); });
  return chart.html(bytes_label, true, bytes_label, true);
}

std::string BudgetCurve::rows() const {
  std::vector<std::vector<std::string>> rows;
  const BudgetPoint* chosen = bought();
  for (const BudgetPoint& point : points_)
    rows.push_back({(&point == chosen ? "<strong>" + mark_ + "</strong>: " : "") + escaped(point.setting),
                    duration(point.step_seconds), (point.assigned ? "" : "about ") + format_bytes(point.peak_bytes)});
  return table({"plan", "step", "least budget"}, rows);
}

const BudgetPoint* BudgetCurve::bought() const {
  const BudgetPoint* best = nullptr;
  for (const BudgetPoint& point : points_)
    if (point.peak_bytes <= budget_ && (!best || point.step_seconds < best->step_seconds)) best = &point;
  return best;
}

// A budget buys the fastest plan below it: a staircase.
template <typename Value>
void BudgetCurve::draw(Chart& chart, const std::string& colour, Value value) const {
  Chart::Points line;
  for (size_t i = 0; i < points_.size(); ++i) {
    const double at = static_cast<double>(points_[i].peak_bytes);
    line.emplace_back(at, value(points_[i]));
    line.emplace_back(i + 1 < points_.size() ? static_cast<double>(points_[i + 1].peak_bytes) : shown_.most,
                      value(points_[i]));
  }
  chart.line(line, "stroke=\"" + colour + "\" stroke-width=\"2\"");
  for (size_t i = 0; i < points_.size(); ++i) draw_point(chart, i, value(points_[i]), colour);
  if (const BudgetPoint* point = bought())
    chart.mark(std::min(static_cast<double>(budget_), shown_.most), value(*point), "#d33", mark_);
}

Span BudgetCurve::around(size_t index) const {
  const auto middle = [&](size_t left) {
    return 0.5 * static_cast<double>(points_[left].peak_bytes + points_[left + 1].peak_bytes);
  };
  return {index == 0 ? shown_.least : middle(index - 1), index + 1 == points_.size() ? shown_.most : middle(index)};
}

void BudgetCurve::draw_point(Chart& chart, size_t index, double value, const std::string& colour) const {
  const BudgetPoint& point = points_[index];
  const double at = static_cast<double>(point.peak_bytes), by = (shown_.most - shown_.least) / 200;
  const std::string title =
      fmt::format("{}\n{} a step\n{}", format_bytes(point.peak_bytes), duration(point.step_seconds), point.setting);
  if (link_)
    chart.link(around(index), at, value, colour, title, link_(index));
  else
    chart.hover(at - by, at + by, title);
}

}  // namespace headroom::report
