// What budgets buy, drawn: predicted time of a step and peak by budget.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/step_memory.h"
#include "report/chart.h"

namespace headroom::report {

class BudgetCurve {
 public:
  // `points` are not empty; `chosen` is the budget that is marked, `mark` says whose it is. With `link` a point leads
  // to the place of the page that it names ("#plan-3") for the point's index by ascending peak.
  BudgetCurve(std::vector<BudgetPoint> points, int64_t chosen, std::string mark,
              std::function<std::string(size_t index)> link = {});

  // The marked budget lies right of every point.
  bool beyond() const { return beyond_; }
  std::string seconds() const;
  std::string peaks() const;
  // The plans as a table.
  std::string rows() const;

 private:
  template <typename Value>
  void draw(Chart& chart, const std::string& colour, Value value) const;
  void draw_point(Chart& chart, size_t index, double value, const std::string& colour) const;
  Span around(size_t index) const;    // what lies nearer to this point than to another
  const BudgetPoint* bought() const;  // by the marked budget; null where none is

  std::vector<BudgetPoint> points_;
  int64_t budget_;
  std::string mark_;
  std::function<std::string(size_t)> link_;
  Span shown_;
  bool beyond_ = false;
};

}  // namespace headroom::report
