#include <fmt/format.h>

#include <cmath>

#include "base/bytes.h"
#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {
namespace {

std::string effect(const TechniqueReport& t) {
  std::string out;
  if (t.saves_bytes > 0) out += "<span class=\"good\">saves " + format_bytes(t.saves_bytes) + "</span> ";
  if (t.saves_bytes < 0) out += "takes " + format_bytes(-t.saves_bytes) + " more ";
  if (std::abs(t.costs_seconds) < 1e-6) return out + (out.empty() ? "no change" : "at no cost");
  return out + fmt::format("{} {} a step", t.costs_seconds > 0 ? "costs" : "wins", duration(std::abs(t.costs_seconds)));
}

}  // namespace

std::string techniques_section(const Run& run) {
  std::string out =
      "<h2>Techniques</h2>\n<p class=\"soft small\">What each saves of the arena and costs per step, as predicted, "
      "against the "
      "same plan without it.</p>\n";
  for (const TechniqueReport& t : run.plan.techniques)
    out += fmt::format(
        "<article><header><b>{}</b> <code>{}</code> <span class=\"soft small\">{}</span> <span>{}</span></header>"
        "<p class=\"soft small\">{}</p></article>\n",
        escaped(t.name), escaped(t.value), escaped(t.kind), effect(t), escaped(t.why));
  return out;
}

}  // namespace headroom::report
