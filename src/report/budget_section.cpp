#include <fmt/format.h>

#include "base/bytes.h"
#include "report/budget_curve.h"
#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {

std::string budget_section(const Run& run) {
  if (!run.memory || run.memory->frontier.empty()) return "";
  const BudgetCurve curve(run.memory->frontier, run.plan.budget, "this run");
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
