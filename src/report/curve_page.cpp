#include "report/curve_page.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/count_text.h"
#include "base/least_bytes.h"
#include "report/budget_curve.h"
#include "report/markup.h"

namespace headroom::report {
namespace {

std::string anchor(size_t index) { return fmt::format("plan-{}", index + 1); }

ClassBytes classes_of(const Breakdown& b) {
  return {b.weights, b.gradients, b.optimizer, b.activations, b.workspace, b.data, b.alignment};
}

std::string fact_of(std::string_view name, const std::string& value, const std::string& more) {
  return fmt::format("<div><dt>{}</dt><dd>{} <small>{}</small></dd></div>\n", name, escaped(value), escaped(more));
}

std::string head_of(const Plan& least, const Plan& fastest) {
  std::string out = fmt::format("<h1>What memory buys: {} with {} parameters</h1>\n<dl class=\"facts\">\n",
                                escaped(fastest.model), format_count(fastest.parameters));
  out += fact_of("least budget", format_least_bytes(least.peak_bytes), duration(least.step_seconds));
  out += fact_of("fastest from", format_least_bytes(fastest.peak_bytes), duration(fastest.step_seconds));
  out += fact_of("sequence", fmt::format("{} tokens", fastest.choices.seq_length), "");
  out += fact_of("precision", fastest.choices.text("precision"), "");
  return out + "</dl>\n";
}

// The legend of the bars of all plans.
std::string colours() {
  std::string out = "<p class=\"legend\">\n";
  for (size_t i = 0; i < kMemoryClasses; ++i)
    out += swatch(colour_of(static_cast<MemoryClass>(i)), memory_class_name(static_cast<MemoryClass>(i)));
  return out + swatch(kProcessColour, "outside the arena") + "</p>\n";
}

std::string tiers_of(const Plan& plan) {
  std::string out;
  for (const Tier tier : kLowerTiers)
    if (const int64_t bytes = plan.below(tier).arena_bytes; bytes > 0)
      out += fmt::format(" <span>and {} of {}</span>", format_bytes(plan.below(tier).peak_bytes), tier_name(tier));
  return out;
}

std::string plan_article(const Plan& plan, const std::string& command, size_t index, bool chosen) {
  std::string out = fmt::format("<article id=\"{}\"><header><b>{}</b> <span>{} a step</span>{}{}</header>\n",
                                anchor(index), format_least_bytes(plan.peak_bytes), duration(plan.step_seconds),
                                tiers_of(plan), chosen ? " <span class=\"good\">what your budget buys</span>" : "");
  out += class_bar(classes_of(plan.breakdown), plan.process.total());
  for (const TechniqueReport& technique : plan.techniques)
    if (technique.taken)
      out += fmt::format("<p class=\"small\"><code>{} {}</code> <span class=\"soft\">{}</span> {}</p>\n",
                         escaped(technique.name), escaped(technique.value), escaped(technique.kind),
                         technique_effect(technique));
  return out +
         fmt::format("<p><code>{}</code></p>\n<p class=\"small\"><a href=\"#curve\">to the curve</a></p></article>\n",
                     escaped(command));
}

}  // namespace

std::string curve_page(const std::vector<Plan>& plans, const std::vector<std::string>& commands, int64_t budget) {
  std::vector<BudgetPoint> points;
  size_t chosen = plans.size();
  for (size_t i = 0; i < plans.size(); ++i) {
    points.push_back({plans[i].peak_bytes, true, plans[i].step_seconds, settings_text(taken_techniques(plans[i]))});
    if (plans[i].peak_bytes <= budget) chosen = i;
  }
  const BudgetCurve curve(points, budget, "your budget", [](size_t index) { return "#" + anchor(index); });
  const Plan &least = plans.front(), &fastest = plans.back();
  std::string out = page_head("What memory buys");
  out += head_of(least, fastest);
  out += fmt::format(
      "<p id=\"curve\" class=\"soft small\">A budget buys the fastest plan whose peak it holds. A point leads to its "
      "plan: what it holds at its peak, its techniques and the command. The red dot is {}, your budget{}.</p>\n",
      format_bytes(budget),
      chosen == plans.size() ? ", which buys nothing"
      : curve.beyond()       ? ", beyond the right edge: more memory gains nothing"
                             : "");
  out += "<h2>Predicted time of a step</h2>\n" + curve.seconds() + "<h2>Planned peak</h2>\n" + curve.peaks();
  out += "<h2>The plans</h2>\n" + colours();
  for (size_t i = 0; i < plans.size(); ++i) out += plan_article(plans[i], commands.at(i), i, i == chosen);
  return out + fmt::format(
                   "<p class=\"soft small\">headroom {}, profile {}, {} thread{}; times are predictions</p>\n"
                   "</body></html>\n",
                   HEADROOM_VERSION, escaped(fastest.profile), fastest.facts.threads,
                   fastest.facts.threads == 1 ? "" : "s");
}

}  // namespace headroom::report
