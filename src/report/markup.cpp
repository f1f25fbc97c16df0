#include "report/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"

namespace headroom::report {
namespace {

// Length of the UTF-8 character at `at`, or 0 when it is broken.
size_t character(std::string_view text, size_t at) {
  const unsigned char lead = static_cast<unsigned char>(text[at]);
  const size_t size = lead < 0x80                   ? 1
                      : lead >= 0xc2 && lead < 0xe0 ? 2
                      : lead >= 0xe0 && lead < 0xf0 ? 3
                      : lead >= 0xf0 && lead < 0xf5 ? 4
                                                    : 0;
  if (size == 0 || at + size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  // Surrogates, U+FFFE and U+FFFF, and overlong forms are not characters of a page.
  const unsigned char second = size > 1 ? static_cast<unsigned char>(text[at + 1]) : 0;
  if (lead == 0xed && second >= 0xa0) return 0;
  if (lead == 0xe0 && second < 0xa0) return 0;
  if (lead == 0xf0 && second < 0x90) return 0;
  if (lead == 0xf4 && second >= 0x90) return 0;
  if (lead == 0xef && second == 0xbf && static_cast<unsigned char>(text[at + 2]) >= 0xbe) return 0;
  return size;
}

}  // namespace

const char* const kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1d21;--soft:#63676f;--line:#d9dce1;--back:#fff;--panel:#f5f6f8;--bad:#c2362b;--good:#1f7a44}
@media(prefers-color-scheme:dark){:root{--ink:#e8e9eb;--soft:#9ea3ab;--line:#3a3e45;--back:#17191c;--panel:#202327;--bad:#ff8478;--good:#6fd196}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:0 auto;max-width:60rem;padding:1rem}
h1{font-size:1.35rem;line-height:1.3;margin:.5rem 0}h2{font-size:1.1rem;margin:2.4rem 0 .4rem}h3{font-size:.95rem;margin:1.2rem 0 .2rem;font-weight:600}
p{margin:.4rem 0}code{font:.88em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
.soft{color:var(--soft)}.bad{color:var(--bad)}.good{color:var(--good)}small,.small{font-size:.85rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.6rem;margin:1rem 0;padding:0}
.facts div{background:var(--panel);border-radius:.5rem;padding:.5rem .7rem}
.facts dt{color:var(--soft);font-size:.8rem}.facts dd{margin:0;font-size:1.15rem;font-variant-numeric:tabular-nums}.facts dd small{color:var(--soft)}
.chart{position:relative;height:15rem;margin:.6rem .2rem 1.9rem 4.4rem}.chart.low{height:9rem}
.chart svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}
.chart span{position:absolute;font-size:.75rem;color:var(--soft);white-space:nowrap;line-height:1;font-variant-numeric:tabular-nums}
.chart .y{right:100%;padding-right:.4rem;transform:translateY(50%)}
.chart .x{top:100%;padding-top:.45rem;transform:translateX(-50%)}.chart .x.end{transform:translateX(-100%)}.chart .x.begin{transform:none}

.strip{display:flex;height:.7rem;margin:0 .2rem .4rem 4.4rem;border-radius:.2rem;overflow:hidden}
.grid{stroke:var(--line);stroke-width:1}.ink{stroke:var(--ink)}.soft-line{stroke:var(--soft)}svg path,svg line{vector-effect:non-scaling-stroke}
.hover{fill:transparent}.hover:hover{fill:var(--ink);fill-opacity:.12}
.bar{display:flex;height:1.6rem;border-radius:.3rem;overflow:hidden;margin:.5rem 0}
.legend{font-size:.85rem;line-height:1.7}.legend span{display:inline-block;margin-right:.9rem;white-space:nowrap}
i{display:inline-block;width:.8em;height:.8em;border-radius:.15em;margin-right:.35em;vertical-align:-.05em}i.rule{height:0;border-top:.18em solid var(--ink);border-radius:0;vertical-align:.25em;width:1.2em}
i.dash{height:0;border-top:.15em dashed var(--soft);border-radius:0;vertical-align:.25em;width:1.4em}
table{border-collapse:collapse;width:100%;font-size:.88rem;margin:.4rem 0}td,th{text-align:right;padding:.28rem 0 .28rem .8rem;border-bottom:1px solid var(--line);vertical-align:top;font-variant-numeric:tabular-nums}
th{color:var(--soft);font-weight:500}td:first-child,th:first-child{text-align:left;padding-left:0;overflow-wrap:anywhere}tr.here td{font-weight:600}
svg a:focus{outline:none}svg a:focus path{stroke:var(--ink)}
td.nowrap{white-space:nowrap}article:target{background:var(--panel);box-shadow:0 0 0 .5rem var(--panel);border-color:transparent}article{border-top:1px solid var(--line);padding:.7rem 0}article p{margin:.15rem 0}
article header{display:flex;flex-wrap:wrap;gap:.2rem .9rem;align-items:baseline}article header b{min-width:9rem}
details{margin:.6rem 0}summary{cursor:pointer;color:var(--soft);font-size:.9rem}
@media(max-width:30rem){.chart,.strip{margin-left:3.6rem}td,th{padding-left:.5rem}table{font-size:.8rem}td:first-child{width:100%}.chart .x.odd{display:none}}
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t size = character(text, at);
    const char c = text[at];
    if (size == 0 || (size == 1 && ((static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == 0x7f)))
      out += "\xef\xbf\xbd";
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(at, size);
    at += std::max<size_t>(1, size);
  }
  return out;
}

std::string duration(double seconds) {
  if (seconds < 0.001) return fmt::format("{:.0f} µs", seconds * 1e6);
  if (seconds < 0.1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  if (seconds > 1e9) return "years";
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string layers(int32_t first, int32_t last) {
  if (first < 0) return "";
  return first == last ? fmt::format("layer {}", first) : fmt::format("layers {} to {}", first, last);
}

const char* colour_of(MemoryClass kind) {
  constexpr const char* colours[] = {"#0072b2", "#d55e00", "#cc79a7", "#009e73", "#e69f00", "#56b4e9", "#b3b8bf"};
  return colours[static_cast<size_t>(kind)];
}

namespace {

// Each class that has bytes, then what lies outside the arena.
template <typename Part>
void each_part(const ClassBytes& bytes, int64_t outside, Part part) {
  for (size_t i = 0; i < kMemoryClasses; ++i)
    if (bytes[i] > 0)
      part(memory_class_name(static_cast<MemoryClass>(i)), colour_of(static_cast<MemoryClass>(i)), bytes[i]);
  if (outside > 0) part("outside the arena", kProcessColour, outside);
}

}  // namespace

std::string class_bar(const ClassBytes& bytes, int64_t outside) {
  std::string out = "<div class=\"bar\">";
  each_part(bytes, outside, [&](std::string_view name, const char* colour, int64_t of) {
    out += fmt::format("<div style=\"flex:{} 0 0;background:{}\" title=\"{} {}\"></div>", of, colour, name,
                       format_bytes(of));
  });
  return out + "</div>\n";
}

std::string class_legend(const ClassBytes& bytes, int64_t outside) {
  std::string out = "<p class=\"legend\">\n";
  each_part(bytes, outside, [&](std::string_view name, const char* colour, int64_t of) {
    out += swatch(colour, fmt::format("{} {}", name, format_bytes(of)));
  });
  return out + "</p>\n";
}

std::string technique_effect(const TechniqueReport& technique) {
  std::string out;
  if (technique.saves_bytes > 0)
    out += "<span class=\"good\">saves " + format_bytes(technique.saves_bytes) + "</span> ";
  if (technique.saves_bytes < 0) out += "takes " + format_bytes(-technique.saves_bytes) + " more ";
  if (std::abs(technique.costs_seconds) < 1e-6) return out + (out.empty() ? "no change" : "at no cost");
  return out + fmt::format("{} {} a step", technique.costs_seconds > 0 ? "costs" : "wins",
                           duration(std::abs(technique.costs_seconds)));
}

std::string page_head(std::string_view title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/><title>{}</title>"
      "<style>{}</style></head>\n<body>\n",
      escaped(title), kStyle);
}

std::string swatch(std::string_view colour, std::string_view name) {
  return fmt::format("<span><i style=\"background:{}\"></i>{}</span>\n", colour, name);
}

std::string level_swatches(bool budget) {
  std::string out = "<span><i class=\"dash\"></i>planned peak</span>\n";
  if (budget) out += "<span><i class=\"rule\" style=\"border-color:#d33\"></i>budget</span>\n";
  return out;
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table><tr>";
  for (const std::string& cell : head) out += "<th>" + cell + "</th>";
  out += "</tr>\n";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) out += (i ? "<td class=\"nowrap\">" : "<td>") + row[i] + "</td>";
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string folded(std::string_view title, std::string_view content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", title, content);
}

}  // namespace headroom::report
