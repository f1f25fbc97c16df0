#include <fmt/format.h>

#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {
std::string techniques_section(const Run& run) {
  std::string out =
      "<h2>Techniques</h2>\n<p class=\"soft small\">What each saves of the arena and costs per step, as predicted, "
      "compared with the same plan without it.</p>\n";
  for (const TechniqueReport& t : run.plan.techniques)
    out += fmt::format(
        "<article><header><b>{}</b> <code>{}</code> <span class=\"soft small\">{}</span> <span>{}</span></header>"
        "<p class=\"soft small\">{}</p></article>\n",
        escaped(t.name), escaped(t.value), escaped(t.kind), technique_effect(t), escaped(t.why));
  return out;
}

}  // namespace headroom::report
