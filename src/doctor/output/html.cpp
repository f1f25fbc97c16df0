#include "doctor/output/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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

// Distinguishable with any colour vision (Okabe and Ito 2008), in the order of the terms now.
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9",
                                    "#d55e00", "#b8a800", "#7a7f87", "#8c6bb1", "#4d9221"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

class Bars {
 public:
  explicit Bars(const Report& report) {
    const Diagnosis& d = report.diagnosis;
    limit_ = d.limit_bytes.value_or(0);
    widest_ = limit_;
    if (report.incident.estimate) add(report.incident.estimate->terms);
    for (const Remedy& remedy : d.remedies) add(remedy.terms_after);
    add(d.terms_after);
  }

  // One bar: a rectangle per term, a line at the limit.
  std::string draw(const std::vector<Term>& terms, std::string_view label) const {
    constexpr double width = 1000;
    const double scale = widest_ > 0 ? width / (1.04 * static_cast<double>(widest_)) : 0;
    std::string out = fmt::format("<svg viewBox=\"0 0 1000 56\" role=\"img\" aria-label=\"{}\">", escaped(label));
    double x = 0;
    int64_t total = 0;
    for (const Term& term : terms) {
      const double length = static_cast<double>(term.bytes) * scale;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"8\" width=\"{:.1f}\" height=\"36\" fill=\"{}\"><title>{} {}</title></rect>", x,
          std::max(0.0, length), colour(term.name), escaped(term.name), figure(term.bytes));
      x += length;
      total += term.bytes;
    }
    if (limit_ > 0) {
      const double at = static_cast<double>(limit_) * scale;
      out += fmt::format("<path d=\"M{0:.1f} 0V56\" stroke=\"{1}\" stroke-width=\"4\" stroke-dasharray=\"8 4\"/>", at,
                         total > limit_ ? "#d33" : "#2a8");
    }
    return out + "</svg>\n";
  }

  std::string legend() const {
    std::string out = "<p class=\"legend\">";
    for (const auto& [name, index] : order_)
      out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour(name), escaped(name));
    if (limit_ > 0) out += fmt::format("<span>&#9478; the limit, {}</span>", figure(limit_));
    return out + "</p>\n";
  }

 private:
  void add(const std::vector<Term>& terms) {
    int64_t total = 0;
    for (const Term& term : terms) {
      total += term.bytes;
      order_.emplace(term.name, order_.size());
    }
    widest_ = std::max(widest_, total);
  }

  const char* colour(const std::string& name) const {
    const auto at = order_.find(name);
    return kColours[(at == order_.end() ? 0 : at->second) % std::size(kColours)];
  }

  std::map<std::string, size_t> order_;
  int64_t limit_ = 0, widest_ = 0;
};

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
  if (!d.causes.empty()) out += "<h2>Why</h2>\n<ol>\n";
  for (const Cause& cause : d.causes) out += "<li>" + escaped(cause.evidence) + "</li>\n";
  if (!d.causes.empty()) out += "</ol>\n";
  if (report.incident.estimate) {
    out += "<h2>What fills the memory</h2>\n" + bars.legend();
    out += fmt::format("<p>now, {}</p>\n", figure(report.incident.estimate->likely_bytes));
    out += bars.draw(report.incident.estimate->terms, "memory now");
    if (d.bytes_after) {
      std::string names;
      for (const std::string& name : d.proposed_set()) names += (names.empty() ? "" : " + ") + name;
      out += fmt::format("<p>with {}, {}</p>\n", escaped(names), figure(*d.bytes_after));
      out += bars.draw(d.terms_after, "memory with the smallest set");
    }
  }
  if (!d.remedies.empty()) out += "<h2>What to do</h2>\n";
  for (const Remedy& remedy : d.remedies) out += remedy_block(remedy, bars);
  if (!report.incident.messages.empty()) out += "<h2>The message</h2>\n" + messages_block(report);
  out += "<p class=\"soft\">" + escaped(headroom_line(report)) + "</p>\n</html>\n";
  return out;
}

}  // namespace headroom::doctor
