#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {
namespace {

std::string bytes_label(double at) { return at == 0 ? "0" : format_bytes(static_cast<int64_t>(at)); }

// The point that a budget buys, or null.
const BudgetPoint* bought(const std::vector<BudgetPoint>& frontier, int64_t budget) {
  const BudgetPoint* best = nullptr;
  for (const BudgetPoint& point : frontier)
    if (point.peak_bytes <= budget && (!best || point.step_seconds < best->step_seconds)) best = &point;
  return best;
}

class Curve {
 public:
  explicit Curve(const Run& run) : run_(run), points_(run.memory->frontier) {
    std::sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
    const double least = static_cast<double>(points_.front().peak_bytes),
                 most = static_cast<double>(points_.back().peak_bytes);
    const double budget = static_cast<double>(run.plan.budget), air = std::max(0.08 * (most - least), 0.02 * most);
    shown_ = {std::max(0.0, least - air), most + air};
    beyond_ = budget > shown_.most;
    if (!beyond_ && budget < shown_.least) shown_.least = 0.98 * budget;
  }

  bool beyond() const { return beyond_; }

  std::string seconds() const {
    double slowest = 0, fastest = points_.front().step_seconds;
    for (const BudgetPoint& point : points_)
      slowest = std::max(slowest, point.step_seconds), fastest = std::min(fastest, point.step_seconds);
    Chart chart("predicted seconds of a step by budget", shown_, {0, 1.1 * std::max(1e-9, slowest)});
    draw(chart, "#0072b2", [](const BudgetPoint& point) { return point.step_seconds; });
    return chart.html(
        bytes_label, true, [](double at) { return at == 0 ? std::string("0") : duration(at); }, false);
  }

  std::string peaks() const {
    Chart chart("planned peak by budget", shown_, {0, 1.1 * static_cast<double>(points_.back().peak_bytes)}, true);
    draw(chart, "#009e73", [](const BudgetPoint& point) { return static_cast<double>(point.peak_bytes); });
    return chart.html(bytes_label, true, bytes_label, true);
  }

  std::string rows() const {
    std::vector<std::vector<std::string>> rows;
    const BudgetPoint* chosen = bought(points_, run_.plan.budget);
    for (const BudgetPoint& point : points_)
      rows.push_back({(&point == chosen ? "<strong>this run</strong>: " : "") + escaped(point.setting),
                      duration(point.step_seconds), (point.packed ? "" : "about ") + format_bytes(point.peak_bytes)});
    return table({"plan", "step", "least budget"}, rows);
  }

 private:
  // A budget buys the fastest plan below it: a staircase.
  template <typename Value>
  void draw(Chart& chart, const std::string& colour, Value value) const {
    Chart::Points line;
    for (size_t i = 0; i < points_.size(); ++i) {
      const double at = static_cast<double>(points_[i].peak_bytes);
      line.emplace_back(at, value(points_[i]));
      line.emplace_back(i + 1 < points_.size() ? static_cast<double>(points_[i + 1].peak_bytes) : shown_.most,
                        value(points_[i]));
    }
    chart.line(line, "stroke=\"" + colour + "\" stroke-width=\"2\"");
    for (const BudgetPoint& point : points_)
      chart.hover(static_cast<double>(point.peak_bytes) - (shown_.most - shown_.least) / 200,
                  static_cast<double>(point.peak_bytes) + (shown_.most - shown_.least) / 200,
                  fmt::format("{}\n{} a step\n{}", format_bytes(point.peak_bytes), duration(point.step_seconds),
                              point.setting));
    const double budget = static_cast<double>(run_.plan.budget);
    if (const BudgetPoint* point = bought(points_, run_.plan.budget))
      chart.mark(std::min(budget, shown_.most), value(*point), "#d33", "this run");
  }

  const Run& run_;
  std::vector<BudgetPoint> points_;
  Span shown_;
  bool beyond_ = false;
};

}  // namespace

std::string budget_section(const Run& run) {
  if (!run.memory || run.memory->frontier.empty()) return "";
  const Curve curve(run);
  std::string out =
      "<h2>What another budget would give</h2>\n<p class=\"soft small\">Every plan that no other beats in both "
      "bytes and predicted time; a budget buys the fastest that fits it. The red dot is this run's budget";
  out += curve.beyond() ? fmt::format(", {}, which lies beyond the right edge: more memory would gain nothing",
                                      format_bytes(run.plan.budget))
                        : "";
  out += ".</p>\n<h3>Predicted time of a step</h3>\n" + curve.seconds() + "<h3>Planned peak</h3>\n" + curve.peaks();
  return out + folded("The plans", curve.rows());
}

}  // namespace headroom::report
