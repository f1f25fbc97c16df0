#include "doctor/output/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/output/html_bars.h"
#include "doctor/output/screen.h"
#include "doctor/remedies/figures.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1d21;--soft:#63676f;--line:#d9dce1;--back:#fff;--bad:#c2362b;--good:#1f7a44}
@media(prefers-color-scheme:dark){:root{--ink:#e8e9eb;--soft:#9ea3ab;--line:#3a3e45;--back:#17191c;--bad:#ff8478;--good:#6fd196}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:0 auto;max-width:52rem;padding:1rem}
h1{font-size:1.35rem;line-height:1.3}h2{font-size:1.05rem;margin:2rem 0 .5rem}
code{font:.9em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);border-radius:.4rem;padding:.7rem;font-size:.85rem}
.soft{color:var(--soft)}.bad{color:var(--bad)}.good{color:var(--good)}
article{border-top:1px solid var(--line);padding:.8rem 0}
article p{margin:.2rem 0}svg{width:100%;height:auto;display:block;margin:.4rem 0}
.legend span{display:inline-block;margin:0 .8rem .2rem 0;white-space:nowrap}
.legend i{display:inline-block;width:.8em;height:.8em;border-radius:.15em;margin-right:.35em;vertical-align:-.05em}
)";

std::string remedy_block(const Remedy& remedy, const Bars& bars) {
  std::string out = "<article><p><code>" + escaped(remedy.set) + "</code></p>\n";
  std::string facts = remedy.saves_bytes ? "saves " + figure(*remedy.saves_bytes) : "saving unknown";
  facts += fmt::format(", {:.2f} x the time, {}, effort: {}", remedy.slowdown, remedy.kind, remedy.effort);
  out += "<p>" + escaped(facts);
  if (remedy.fits_alone) out += " <strong class=\"good\">fits alone</strong>";
  if (remedy.one_try) out += " <strong>one try, but not a fix</strong>";
  out += "</p>\n";
  if (!remedy.terms_after.empty()) out += bars.draw(remedy.terms_after, "memory with " + remedy.name);
  out += "<p class=\"soft\">" + escaped(remedy.why + "; " + remedy.effect) + "</p>\n";
  if (!remedy.needs.empty()) out += "<p class=\"soft\">needs " + escaped(remedy.needs) + "</p>\n";
  for (const std::string& caveat : remedy.caveats) out += "<p class=\"soft\">! " + escaped(caveat) + "</p>\n";
  return out + "</article>\n";
}

// The situations that the case looks like, with their advice.
std::string situations_block(const Report& report) {
  std::string out;
  for (const SeenSituation& seen : report.diagnosis.situations) {
    out += fmt::format(
        "<article><p><strong>{}</strong></p>\n<svg viewBox=\"0 0 1000 20\" role=\"img\" aria-label=\"evidence {:.0f} "
        "of "
        "100\"><rect width=\"1000\" height=\"12\" fill=\"var(--line)\"/><rect width=\"{:.0f}\" height=\"12\" "
        "fill=\"#0072b2\"/></svg>\n<p class=\"soft\">seen by {}</p>\n",
        escaped(seen.cause), 100 * seen.evidence, 1000 * seen.evidence, escaped(seen.shown));
    for (const std::string& advice : seen.advice) out += fmt::format("<p><code>{}</code></p>\n", escaped(advice));
    out += "</article>\n";
  }
  return out.empty() ? out : "<h2>What this looks like</h2>\n" + out;
}

// Causes that are situations are listed in that block.
std::string causes_block(const Diagnosis& diagnosis) {
  std::string out;
  for (const Cause& cause : diagnosis.causes) {
    const bool situation = std::any_of(diagnosis.situations.begin(), diagnosis.situations.end(),
                                       [&](const SeenSituation& seen) { return seen.name == cause.name; });
    if (!situation) out += "<li>" + escaped(cause.evidence) + "</li>\n";
  }
  return out.empty() ? out : "<h2>Why</h2>\n<ol>\n" + out + "</ol>\n";
}

// What fills the memory: from the message if it has figures, and from the estimate if there is one.
std::string bars_block(const Report& report, const Bars& bars) {
  const Diagnosis& d = report.diagnosis;
  const std::vector<Term> shown = terms_of_message(report.incident);
  std::string out;
  if (!shown.empty()) out += "<p>when it failed, by the message</p>\n" + bars.draw(shown, "memory when it failed");
  if (report.incident.estimate) {
    out += fmt::format("<p>now, {}</p>\n", figure(report.incident.estimate->likely_bytes));
    out += bars.draw(report.incident.estimate->terms, "memory now");
  }
  if (report.incident.estimate && d.bytes_after) {
    std::string names;
    for (const std::string& name : d.proposed_set()) names += (names.empty() ? "" : " + ") + name;
    out += fmt::format("<p>with {}, {}</p>\n", escaped(names), figure(*d.bytes_after));
    out += bars.draw(d.terms_after, "memory with the smallest set");
  }
  return out.empty() ? out : "<h2>What fills the memory</h2>\n" + bars.legend() + out;
}

std::string questions_block(const Report& report) {
  std::string out;
  for (const Question& question : report.questions)
    out += fmt::format("<li><code>{}</code>: {}</li>\n", escaped(question.option), escaped(question.text));
  return out.empty() ? out : "<h2>What would decide</h2>\n<ul>\n" + out + "</ul>\n";
}

std::string messages_block(const Report& report) {
  std::string out;
  for (const Message& message : report.incident.messages) out += fmt::format("<pre>{}</pre>\n", escaped(message.text));
  return out;
}

}  // namespace

std::string report_html(const Report& report) {
  const Diagnosis& d = report.diagnosis;
  const Bars bars(report);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>headroom doctor</title>";
  out += fmt::format("<style>{}</style>\n<h1>{}</h1>\n", kStyle, escaped(headline(report)));
  out +=
      fmt::format("<p class=\"{}\"><strong>Does it fit?</strong> {}</p>\n",
                  d.fits.value_or(false) || !d.smallest_fitting_set.empty() ? "good" : "bad", escaped(verdict(report)));
  for (const SnapshotAnalysis& snapshot : report.snapshots) {
    out += "<h2>Memory over time</h2>\n" + snapshot_svg(snapshot);
    out += "<pre>" + escaped(snapshot_text(snapshot, false)) + "</pre>\n";
  }
  out += situations_block(report) + causes_block(d) + bars_block(report, bars) + questions_block(report);
  if (!d.remedies.empty()) out += "<h2>What to do</h2>\n";
  for (const Remedy& remedy : d.remedies) out += remedy_block(remedy, bars);
  if (!report.incident.messages.empty()) out += "<h2>The message</h2>\n" + messages_block(report);
  if (const std::string line = headroom_line(report); !line.empty())
    out += "<p class=\"soft\">" + escaped(line) + "</p>\n";
  out += "</html>\n";
  return out;
}

}  // namespace headroom::doctor
