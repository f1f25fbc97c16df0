#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {
namespace {

constexpr size_t kShown = 16;

// A name with its class, and the layers it belongs to, below it.
std::string named(const std::string& name, MemoryClass kind, const std::string& where) {
  return fmt::format("<code>{}</code><br/><span class=\"soft\"><i style=\"background:{}\"></i>{}{}</span>",
                     escaped(name), colour_of(kind), memory_class_name(kind), where.empty() ? "" : ", " + where);
}

std::string group_rows(const std::vector<TensorGroup>& groups, size_t begin, size_t end) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = begin; i < std::min(end, groups.size()); ++i) {
    const TensorGroup& g = groups[i];
    rows.push_back({named(g.name, g.kind, layers(g.first_layer, g.last_layer)), fmt::format("{}", g.count),
                    format_bytes(g.bytes)});
  }
  return table({"tensors", "how many", "bytes"}, rows);
}

std::string tensor_rows(const StepMemory& step) {
  std::vector<std::vector<std::string>> rows;
  for (const StorageSpan& t : step.tensors)
    rows.push_back({named(t.name, t.kind, layers(t.block, t.block)),
                    t.begin == 0 && t.end >= step.instructions ? "always" : fmt::format("{} to {}", t.begin + 1, t.end),
                    format_bytes(t.bytes)});
  return table({"tensor", "alive", "bytes"}, rows);
}

// A bar per layer, at most 80: beyond that, equal runs of layers are one bar.
std::string layer_bars(const StepMemory& step) {
  const size_t each = std::max<size_t>(1, (step.layers.size() + 79) / 80);
  std::vector<std::pair<std::string, ClassBytes>> bars;
  int64_t widest = 1;
  for (size_t i = 0; i < step.layers.size(); i += each) {
    const size_t last = std::min(i + each, step.layers.size()) - 1;
    ClassBytes sum{};
    int64_t all = 0;
    for (size_t at = i; at <= last; ++at)
      for (size_t kind = 0; kind < kMemoryClasses; ++kind)
        sum[kind] += step.layers[at].bytes[kind], all += step.layers[at].bytes[kind];
    bars.emplace_back(step.layers[i].layer < 0 ? "no layer" : layers(step.layers[i].layer, step.layers[last].layer),
                      sum);
    widest = std::max(widest, all);
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, bytes] : bars) {
    std::string bar = "<div class=\"bar\" style=\"height:.8rem;margin:.35rem 0\">";
    int64_t all = 0;
    for (size_t kind = 0; kind < kMemoryClasses; ++kind) {
      if (bytes[kind] <= 0) continue;
      bar += fmt::format("<div style=\"flex:0 0 {:.2f}%;background:{}\" title=\"{} {}\"></div>",
                         100.0 * static_cast<double>(bytes[kind]) / static_cast<double>(widest),
                         colour_of(static_cast<MemoryClass>(kind)), memory_class_name(static_cast<MemoryClass>(kind)),
                         format_bytes(bytes[kind]));
      all += bytes[kind];
    }
    rows.push_back({name, format_bytes(all), bar + "</div>"});
  }
  std::string out = "<table class=\"layers\">";
  for (const auto& row : rows)
    out += "<tr><td style=\"white-space:nowrap\">" + row[0] + "</td><td class=\"nowrap\">" + row[1] +
           "</td><td style=\"width:70%\">" + row[2] + "</td></tr>\n";
  return out + "</table>\n";
}

}  // namespace

std::string peak_section(const Run& run) {
  if (!run.memory || run.memory->step.groups.empty()) return "";
  const StepMemory& step = run.memory->step;
  const int64_t planned = std::accumulate(step.peak.begin(), step.peak.end(), run.plan.process);
  std::string out = "<h2>The peak</h2>\n";
  out += fmt::format("<p>{} of a step are planned at instruction {} of {}: <code>{}</code>{}, {} pass.</p>\n",
                     format_bytes(planned), step.peak_instruction + 1, step.instructions, escaped(step.peak_op),
                     step.peak_block >= 0 ? fmt::format(" of layer {}", step.peak_block) : "",
                     stage_name(step.peak_stage));
  out += class_bar(step.peak, run.plan.process) + class_legend(step.peak, run.plan.process);
  out += "<h3>What is alive there</h3>\n" + group_rows(step.groups, 0, kShown);
  if (step.groups.size() > kShown)
    out += folded(fmt::format("{} more", step.groups.size() - kShown),
                  group_rows(step.groups, kShown, step.groups.size()));
  out += folded(fmt::format("The {} largest one by one", step.tensors.size()), tensor_rows(step));
  return out + folded("By layer", layer_bars(step));
}

}  // namespace headroom::report
