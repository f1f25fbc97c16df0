// Charts of what a budget buys: the predicted time of a step and the planned peak.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/step_memory.h"
#include "report/chart.h"

namespace headroom::report {

class BudgetCurve {
 public:
  // `points` is not empty; `chosen` is the budget that is marked, `mark` its name. With `link` each point links to the
  // place of the page that link(index) names ("#plan-3"); the index counts points by ascending peak.
  BudgetCurve(std::vector<BudgetPoint> points, int64_t chosen, std::string mark,
              std::function<std::string(size_t index)> link = {});

  // Whether the marked budget is off the chart, to the right of every point.
  bool beyond() const { return beyond_; }
  // The two charts as HTML, by budget: seconds of a step, and planned peak.
  std::string seconds() const;
  std::string peaks() const;
  // The plans as an HTML table.
  std::string rows() const;

 private:
  template <typename Value>
  void draw(Chart& chart, const std::string& colour, Value value) const;
  void draw_point(Chart& chart, size_t index, double value, const std::string& colour) const;
  Span around(size_t index) const;    // the budgets that are nearer to this point than to another
  const BudgetPoint* bought() const;  // the point that the marked budget buys; null if none fits it

  std::vector<BudgetPoint> points_;
  int64_t budget_;
  std::string mark_;
  std::function<std::string(size_t)> link_;
  Span shown_;
  bool beyond_ = false;
};

}  // namespace headroom::report
