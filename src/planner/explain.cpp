#include "planner/explain.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/least_bytes.h"
#include "planner/estimates.h"
#include "planner/explain_automatic.h"
#include "planner/explain_frontier.h"
#include "planner/explain_tiers.h"

namespace headroom {
namespace {

bool is_part(PipelinePart part, const Technique& technique) {
  const auto techniques = techniques_of(part);
  return std::find(techniques.begin(), techniques.end(), &technique) != techniques.end();
}

// What a technique saves and costs against the plan without it. Without a technique that rewrites the forward program
// the graph is another one, which is not kept.
void compare(const PlanRequest& request, Bounder& bounder, const Candidate& without, const Bound& reached,
             bool other_graph, TechniqueReport& report) {
  const Bound bound = other_graph ? Bounder(request).bound(without) : bounder.bound(without);
  report.saves_bytes = bound.arenas.device - reached.arenas.device;
  report.costs_seconds = reached.step_seconds - bound.step_seconds;
}

// Why a technique has its value: from a pin, else what prevents it, else the technique's own reason.
std::string reason(const PlanRequest& request, const Technique& technique, const Told& told) {
  const auto pin = request.techniques.find(std::string(technique.name()));
  if (pin != request.techniques.end() && !told.pin_leaves_choice)
    return !pin->second.why.empty() ? pin->second.why
                                    : fmt::format("pinned by --technique {}={}", pin->first, pin->second.setting);
  if (!technique.verdict) return told.why;
  const Verdict verdict = technique.verdict(request);
  if (verdict.why_not.empty()) return told.why;
  return verdict.why_not + (verdict.remedy.empty() ? "" : ": " + verdict.remedy);
}

TechniqueReport report_technique(const PlanRequest& request, Bounder& bounder, const Technique& technique,
                                 const Candidate& chosen, const Bound& reached) {
  const Told told = technique.told(request, chosen);
  TechniqueReport report{std::string(technique.name()),
                         std::string(kind_name(technique.info->kind)),
                         told.value,
                         0,
                         0,
                         reason(request, technique, told) + told.also};
  report.taken = told.without || (asked_for(request, *technique.info) && told.value != "off");
  if (!told.without) return report;
  const bool other_graph = is_part(PipelinePart::model, technique) || is_part(PipelinePart::products, technique);
  compare(request, bounder, *told.without, reached, other_graph, report);
  if (report.saves_bytes < 0) report.why += told.if_larger;
  return report;
}

void explain_parts(const Plan& plan, std::string& text) {
  const Breakdown& b = plan.breakdown;
  const ProcessBytes& c = plan.process;
  const auto row = [&](const char* name, int64_t bytes) {
    text += fmt::format("  {:<22}{:>12}  {:>15} bytes\n", name, format_bytes(bytes), bytes);
  };
  row("weights", b.weights);
  row("gradients", b.gradients);
  row("optimizer states", b.optimizer);
  row("activations", b.activations);
  row("workspace", b.workspace);
  row("data and tables", b.data);
  row("alignment and gaps", b.alignment);
  row("arena", plan.arena_bytes);
  row("code and libraries", c.code + c.kernels);
  row("tokenizer and loader", c.tokenizer + c.data);
  if (c.grammar > 0) row("grammar and masks", c.grammar);
  if (c.server > 0) row("server", c.server);
  row("plan tables", c.planner);
  row("copies to disk", c.copies);
  row("page tables", c.page_tables);
  if (c.caller > 0) row("calling program", c.caller);
  if (c.graphs > 0) row("CUDA graphs", c.graphs);
  row("peak", plan.peak_bytes);
}

// The source of the rates for the predicted seconds, if this program did not measure them.
void explain_sources(const Profile& profile, std::string& text) {
  if (profile.sources.empty()) return;
  text += "rates of the profile that headroom has not measured\n";
  for (const RateSource& source : profile.sources) text += fmt::format("  {:<40} {}\n", source.rates, source.from);
}

// Nothing for a technique that is off: what it would save is unknown.
std::string describe_effect(const TechniqueReport& technique) {
  if (technique.saves_bytes == 0 && technique.costs_seconds == 0) return {};
  return fmt::format("saves {}, costs {:.3f} s per step: ", format_bytes(technique.saves_bytes),
                     technique.costs_seconds);
}

}  // namespace

void report_techniques(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                       Plan& plan) {
  for (const Technique* technique : all_techniques())
    plan.techniques.push_back(report_technique(request, bounder, *technique, chosen, reached));
}

std::string explain(const PlanRequest& request, const SearchResult& result) {
  const Plan& plan = result.plan;
  std::string text = fmt::format("model {} with {} parameters, {} threads, profile {}\n", plan.model, plan.parameters,
                                 plan.facts.threads, plan.profile);
  if (const std::string unmeasured = estimates(request.profile); !unmeasured.empty()) text += unmeasured + "\n";
  explain_sources(request.profile, text);
  if (plan.feasible) {
    text += fmt::format("budget {}: fits, peak {} ({} unused), predicted step {:.3f} s\n",
                        format_bytes(plan.budget_bytes), format_bytes(plan.peak_bytes),
                        format_bytes(plan.budget_bytes - plan.peak_bytes), plan.step_seconds);
    if (const int64_t interval = plan.choices.integer("curvature_interval"); interval > 0)
      text += fmt::format(
          "curvature: one more pass every {} steps, over a batch of {} with drawn labels; its share is in the "
          "predicted step\n",
          interval, plan.choices.integer("curvature_rows"));
    explain_parts(plan, text);
    explain_lower_tiers(plan, text);
  } else {
    text += fmt::format("budget {}: does not fit, short of {}; the least that works is {} bytes ({})\n",
                        format_bytes(plan.budget_bytes), format_bytes(plan.minimum_bytes - plan.budget_bytes),
                        plan.minimum_bytes, format_least_bytes(plan.minimum_bytes));
    for (const Tier tier : kLowerTiers)
      if (const TierPlan& below = plan.below(tier); below.budget_bytes > 0)
        text +=
            fmt::format("{} budget {}: with the budget above, the least that works is {} bytes ({})\n", tier_name(tier),
                        format_bytes(below.budget_bytes), below.peak_bytes, format_least_bytes(below.peak_bytes));
  }
  if (plan.feasible) text += "techniques\n";
  for (const TechniqueReport& t : plan.techniques)
    text += fmt::format("  {:<20} {:<13} {}\n      {}{}\n", t.name, t.kind, t.value, describe_effect(t), t.why);
  if (plan.feasible) text += explain_automatic(plan);
  text += "plans that no other beats in both memory and time (least memory first)\n";
  explain_frontier(request.budget_bytes, result, text);
  return text;
}

}  // namespace headroom
