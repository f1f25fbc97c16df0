#include "report/page.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/count_text.h"
#include "report/markup.h"

namespace headroom::report {
namespace {

std::string fact(std::string_view name, const std::string& value, const std::string& more = "") {
  return fmt::format("<div><dt>{}</dt><dd>{}{}</dd></div>\n", name, escaped(value),
                     more.empty() ? "" : " <small>" + escaped(more) + "</small>");
}

std::string state_of(const Run& run) {
  const int64_t step = run.metrics.last ? run.metrics.last->step : 0;
  if (run.end && run.end->stopped_by)
    return fmt::format("<p>Stopped by signal {} after step {}.</p>\n", run.end->stopped_by, step);
  if (run.end && run.end->early)
    return fmt::format("<p class=\"good\">Ended early after step {} of {}: {}.</p>\n", step, run.end->total_steps,
                       run.end->early->reason());
  if (run.end) return fmt::format("<p class=\"good\">Finished after step {}.</p>\n", step);
  return fmt::format("<p class=\"bad\">Not finished: the last step in its files is {}{}.</p>\n", step,
                     run.process ? fmt::format(" of {}", run.process->total_steps) : "");
}

// For a run that has not ended, that of the last line that its own process wrote: the earlier steps of a resumed run
// had another plan. After its first step a run touches no more pages, so the last line has the peak.
int64_t measured_peak(const Run& run) {
  if (run.end) return run.end->peak_resident;
  if (!run.metrics.last || (run.process && run.metrics.last->step < run.process->first_step)) return 0;
  return run.metrics.last->resident_bytes;
}

}  // namespace

std::string head_section(const Run& run) {
  const PlanFile& plan = run.plan;
  std::string name = run.directory.lexically_normal().filename().string();
  if (name.empty()) name = run.directory.lexically_normal().parent_path().filename().string();
  std::string out = fmt::format("<h1>{}: {} with {} parameters in {}</h1>\n", escaped(name), escaped(plan.model),
                                format_count(plan.parameters), format_bytes(plan.budget));
  out += state_of(run) + "<dl class=\"facts\">\n";
  out += fact("budget", format_bytes(plan.budget));
  out += fact("planned peak", format_bytes(plan.peak), "bound");
  if (measured_peak(run) > 0) out += fact("measured peak", format_bytes(measured_peak(run)), "resident");
  out += fact("least budget", format_bytes(plan.minimum));
  if (run.metrics.last) {
    const StepLine& last = *run.metrics.last;
    out += fact("loss", fmt::format("{:.4f}", last.loss), fmt::format("step {}", last.step));
    if (run.metrics.last_eval) {
      out += fact("evaluation loss", fmt::format("{:.4f}", run.metrics.last_eval->loss));
      if (const auto accuracy = run.metrics.last_eval->accuracy)
        out += fact("evaluation accuracy", fmt::format("{:.4f}", *accuracy));
    }
    if (run.metrics.classifies())
      out += fact("samples a second", fmt::format("{:.1f}", run.metrics.samples_per_second.mean()), "mean");
    out += fact("tokens a second", fmt::format("{:.0f}", run.metrics.tokens_per_second.mean()), "mean");
    out += fact("step", duration(run.metrics.step_seconds.mean()), duration(plan.step_seconds) + " predicted");
  }
  out += fact("batch", fmt::format("{} x {}", plan.micro_batch, plan.accumulation),
              fmt::format("of {} tokens", plan.seq_length));
  out += fact("precision", plan.precision);
  return out + "</dl>\n";
}

std::string process_section(const Run& run) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, peak] : run.plan.phases) rows.push_back({escaped(name), format_bytes(peak)});
  std::string out = "<h2>Planned and measured</h2>\n";
  std::vector<std::vector<std::string>> compared;
  compared.push_back(
      {"arena: every tensor", format_bytes(run.plan.arena), run.end ? format_bytes(run.end->arena_measured) : "", ""});
  const int64_t resident = measured_peak(run);
  compared.push_back({"whole process", format_bytes(run.plan.peak), resident > 0 ? format_bytes(resident) : "",
                      resident > 0
                          ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(resident) /
                                                        static_cast<double>(std::max<int64_t>(1, run.plan.peak)))
                          : ""});
  out += table({"", "planned", "measured", "used"}, compared);
  out +=
      "<p class=\"soft small\">The arena's planned and measured bytes are equal by construction; the process's plan is "
      "an "
      "upper bound on what the system charges.</p>\n<h3>The peak of each phase</h3>\n" +
      table({"phase", "whole process, planned"}, rows);
  rows.clear();
  for (const auto& [name, bytes] : run.plan.parts) {
    std::string words = name;
    for (char& c : words) c = c == '_' ? ' ' : c;
    if (bytes > 0) rows.push_back({words, format_bytes(bytes)});
  }
  out += "<h3>Outside the arena</h3>\n" + table({"part", "bound"}, rows);
  return out;
}

std::string page(const Run& run) {
  std::string out = page_head("headroom report");
  out += head_section(run) + timeline_section(run) + peak_section(run) + curves_section(run) + lengths_section(run) +
         techniques_section(run) + budget_section(run) + process_section(run);
  out += fmt::format("<p class=\"soft small\">headroom {}, profile {}, {} thread{}</p>\n</body></html>\n",
                     HEADROOM_VERSION, escaped(run.plan.profile), run.plan.threads, run.plan.threads == 1 ? "" : "s");
  return out;
}

}  // namespace headroom::report
