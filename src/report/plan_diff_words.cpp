#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "report/markup.h"
#include "report/plan_diff.h"

namespace headroom::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kShownTensors = 20;

std::string difference(int64_t bytes) {
  if (bytes == 0) return "same";
  return (bytes < 0 ? "-" : "+") + format_bytes(bytes < 0 ? -bytes : bytes);
}

std::string difference(double seconds) {
  if (seconds == 0) return "same";
  return (seconds < 0 ? "-" : "+") + duration(seconds < 0 ? -seconds : seconds);
}

std::string row(std::string_view name, std::string_view a, std::string_view b, std::string_view more) {
  return fmt::format("  {:<37} {:>12} {:>12} {:>13}\n", name, a, b, more);
}

std::string row(const PlanDiff::Figures& figures) {
  return row(figures.name, format_bytes(figures.bytes[0]), format_bytes(figures.bytes[1]), difference(figures.more()));
}

// Names longer than their column keep both ends: the op, and which of a layer's weights it reads.
PlanDiff::Figures shortened_name(PlanDiff::Figures figures) {
  constexpr size_t kWidth = 37, kBegin = 10;
  std::string& name = figures.name;
  if (name.size() > kWidth) name = name.substr(0, kBegin) + "..." + name.substr(name.size() - (kWidth - kBegin - 3));
  return figures;
}

// Breaks text into lines that fit next to the column of names, indented below the first one.
std::string in_lines(std::string_view text) {
  constexpr size_t kName = 26, kWidth = 80 - kName;
  std::string out;
  while (text.size() > kWidth) {
    const size_t space = text.rfind(' ', kWidth);
    if (space == std::string_view::npos) break;
    out += std::string(text.substr(0, space)) + "\n" + std::string(kName, ' ');
    text.remove_prefix(space + 1);
  }
  return out + std::string(text);
}

void add_words(const char* title, const std::vector<PlanDiff::Words>& rows, std::string& out) {
  if (rows.empty()) return;
  out += fmt::format("{}\n", title);
  for (const PlanDiff::Words& words : rows) {
    const auto shown = [&](size_t which) {
      return words.values[which].empty() ? "unknown" : in_lines(words.values[which]);
    };
    out += fmt::format("  {:<20} A  {}\n  {:<20} B  {}\n", words.name, shown(0), "", shown(1));
  }
}

void add_tensors(const PlanDiff& diff, std::string& out) {
  if (!diff.knows_tensors) {
    out += "a file does not say which tensors are alive at its peak: plan it again\n";
    return;
  }
  if (diff.tensors.empty()) return;
  out += "tensors at the peak that differ\n";
  const size_t shown = std::min(kShownTensors, diff.tensors.size());
  for (size_t i = 0; i < shown; ++i) out += row(shortened_name(diff.tensors[i]));
  if (const size_t rest = diff.tensors.size() - shown; rest > 0) out += fmt::format("  {} more with --json\n", rest);
}

}  // namespace

std::string diff_json(const PlanDiff& diff) {
  OrderedJson out{{"peak_bytes", diff.peak}, {"step_seconds", diff.step_seconds}, {"budget_bytes", diff.budget}};
  out["request"] = OrderedJson::array();
  for (const PlanDiff::Words& words : diff.request)
    out["request"].push_back({{"name", words.name}, {"a", words.values[0]}, {"b", words.values[1]}});
  out["techniques"] = OrderedJson::array();
  for (const PlanDiff::Words& words : diff.techniques)
    out["techniques"].push_back({{"name", words.name}, {"a", words.values[0]}, {"b", words.values[1]}});
  for (const PlanDiff::Figures& figures : diff.breakdown) out["breakdown"][figures.name] = figures.bytes;
  out["process_bytes"] = diff.process;
  out["tiers"] = OrderedJson::object();
  for (const PlanDiff::Figures& figures : diff.below) out["tiers"][figures.name] = figures.bytes;
  out["tensors"] = OrderedJson::array();
  for (const PlanDiff::Figures& figures : diff.tensors)
    out["tensors"].push_back({{"name", figures.name}, {"class", figures.of}, {"bytes", figures.bytes}});
  return out.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string diff_text(const PlanDiff& diff) {
  std::string out = row("", "A", "B", "B - A");
  out += row({"budget", diff.budget});
  out += row({"peak", diff.peak});
  out += row("step", duration(diff.step_seconds[0]), duration(diff.step_seconds[1]),
             difference(diff.step_seconds[1] - diff.step_seconds[0]));
  for (const PlanDiff::Figures& figures : diff.below) out += row({"peak of the " + figures.name, figures.bytes});
  add_words("planned for", diff.request, out);
  add_words("techniques that differ", diff.techniques, out);
  if (diff.techniques.empty()) out += "no technique differs\n";
  out += "the peak by class\n";
  for (const PlanDiff::Figures& figures : diff.breakdown)
    if (figures.bytes[0] > 0 || figures.bytes[1] > 0) out += row(figures);
  out += row({"outside the arena", diff.process});
  add_tensors(diff, out);
  return out;
}

}  // namespace headroom::report
