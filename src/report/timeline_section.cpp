#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/bytes.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"

namespace headroom::report {
namespace {

// From classes that stay to those that come and go.
constexpr std::array kOrder{MemoryClass::weights,   MemoryClass::optimizer, MemoryClass::data,
                            MemoryClass::alignment, MemoryClass::gradients, MemoryClass::activations,
                            MemoryClass::workspace};

constexpr std::array kStages{Stage::forward, Stage::backward, Stage::recompute, Stage::update, Stage::transfer};

const char* stage_colour(Stage stage) {
  constexpr const char* colours[] = {"#5b8fb9", "#b07aa1", "#e0a030", "#6aa36f", "#9a9a9a"};
  return colours[static_cast<size_t>(stage)];
}

int64_t total(const ClassBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

class Timeline {
 public:
  explicit Timeline(const Run& run) : run_(run), points_(run.memory->step.points) {
    // By seconds if they were measured, else by instructions.
    const bool timed =
        run.measured && std::accumulate(run.measured->seconds.begin(), run.measured->seconds.end(), 0.0) > 0;
    edges_.push_back(0);
    for (size_t i = 0; i < points_.size(); ++i) {
      const int32_t next = i + 1 < points_.size() ? points_[i + 1].begin : run.memory->step.instructions;
      edges_.push_back(timed ? edges_.back() + run.measured->seconds[i] : std::max(0, next));
    }
    timed_ = timed;
  }

  std::string html() const {
    double top = static_cast<double>(run_.plan.peak);
    if (run_.measured)
      for (const int64_t bytes : run_.measured->resident) top = std::max(top, static_cast<double>(bytes));
    const double budget = static_cast<double>(run_.plan.budget);
    const bool shows_budget = budget <= 1.6 * top;
    Chart chart("memory of a training step by class", {0, edges_.back()},
                {0, 1.06 * (shows_budget ? std::max(top, budget) : top)});
    draw_areas(chart);
    chart.level(static_cast<double>(run_.plan.peak),
                "class=\"soft-line\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"");
    if (shows_budget) chart.level(budget, "stroke=\"#d33\" stroke-width=\"1.5\"");
    draw_measured(chart);
    hovers(chart);
    const auto x = [&](double at) { return timed_ ? at == 0 ? "0" : duration(at) : fmt::format("{:.0f}", at); };
    const auto y = [](double at) { return at == 0 ? "0" : format_bytes(static_cast<int64_t>(at)); };
    return legend(shows_budget) + chart.html(x, false, y, true) + stages();
  }

 private:
  void draw_areas(Chart& chart) const {
    std::vector<double> base(points_.size(), 0.0), height(points_.size(), static_cast<double>(run_.plan.process));
    const auto steps = [&](const std::vector<double>& level) {
      Chart::Points out;
      for (size_t i = 0; i < level.size(); ++i)
        out.emplace_back(edges_[i], level[i]), out.emplace_back(edges_[i + 1], level[i]);
      return out;
    };
    chart.area(steps(base), steps(height), kProcessColour);
    for (const MemoryClass kind : kOrder) {
      base = height;
      for (size_t i = 0; i < points_.size(); ++i)
        height[i] += static_cast<double>(points_[i].bytes[static_cast<size_t>(kind)]);
      chart.area(steps(base), steps(height), colour_of(kind));
    }
  }

  void draw_measured(Chart& chart) const {
    if (!run_.measured) return;
    Chart::Points line;
    for (size_t i = 0; i < points_.size(); ++i)
      if (run_.measured->resident[i] > 0)
        line.emplace_back((edges_[i] + edges_[i + 1]) / 2, static_cast<double>(run_.measured->resident[i]));
    chart.line(line, "class=\"ink\" stroke-width=\"2.2\"");
  }

  // At most 120 strips, each of about the same width.
  void hovers(Chart& chart) const {
    for (size_t i = 0; i < points_.size();) {
      size_t end = i + 1;
      while (end < points_.size() && edges_[end] - edges_[i] < edges_.back() / 120) ++end;
      size_t fullest = i;
      for (size_t at = i; at < end; ++at)
        if (total(points_[at].bytes) > total(points_[fullest].bytes)) fullest = at;
      const TimelinePoint& point = points_[fullest];
      std::string title(stage_name(point.stage));
      if (point.block >= 0) title += fmt::format(", layer {}", point.block);
      title += fmt::format("\nplanned {}", format_bytes(total(point.bytes) + run_.plan.process));
      if (run_.measured) title += fmt::format("\nmeasured {}", format_bytes(run_.measured->resident[fullest]));
      for (size_t kind = 0; kind < kMemoryClasses; ++kind)
        if (point.bytes[kind] > 0)
          title += fmt::format("\n{} {}", memory_class_name(static_cast<MemoryClass>(kind)),
                               format_bytes(point.bytes[kind]));
      chart.hover(edges_[i], edges_[end], title);
      i = end;
    }
  }

  std::string legend(bool shows_budget) const {
    std::string out = "<p class=\"legend\">\n";
    for (size_t i = kOrder.size(); i-- > 0;)
      if (std::any_of(points_.begin(), points_.end(), [&](const TimelinePoint& point) {
            return point.bytes[static_cast<size_t>(kOrder[i])] * 1000 > run_.plan.peak;
          }))
        out += swatch(colour_of(kOrder[i]), memory_class_name(kOrder[i]));
    out += swatch(kProcessColour, "outside the arena");
    if (run_.measured) out += "<span><i class=\"rule\"></i>measured: resident set, first step</span>\n";
    out += level_swatches(shows_budget);
    return out + "</p>\n";
  }

  // A strip below the chart that shows the stages of the step.
  std::string stages() const {
    std::string out = "<div class=\"strip\">";
    std::array<double, kStages.size()> share{};
    for (size_t i = 0; i < points_.size();) {
      size_t end = i + 1;
      while (end < points_.size() && points_[end].stage == points_[i].stage) ++end;
      const double width = edges_[end] - edges_[i];
      out += fmt::format("<div style=\"flex:{:.4f} 0 0;background:{}\" title=\"{}\"></div>",
                         1000 * width / std::max(1e-12, edges_.back()), stage_colour(points_[i].stage),
                         stage_name(points_[i].stage));
      share[static_cast<size_t>(points_[i].stage)] += width;
      i = end;
    }
    out += "</div>\n<p class=\"legend\">\n";
    for (const Stage stage : kStages)
      if (const double part = share[static_cast<size_t>(stage)] / std::max(1e-12, edges_.back()); part > 0)
        out +=
            swatch(stage_colour(stage), fmt::format("{} {:.{}f} %", stage_name(stage), 100 * part, part < 0.1 ? 1 : 0));
    return out + "</p>\n";
  }

  const Run& run_;
  const std::vector<TimelinePoint>& points_;
  std::vector<double> edges_;
  bool timed_ = false;
};

}  // namespace

std::string timeline_section(const Run& run) {
  std::string out = "<h2>Memory of a step</h2>\n";
  if (!run.memory || run.memory->step.points.empty())
    return out + "<p class=\"soft\">This run left no memory.json: its timeline is not known.</p>\n";
  out += Timeline(run).html();
  out += fmt::format("<p class=\"soft small\">Areas: what the plan holds alive, by class, as {} instructions run{}.",
                     run.memory->step.instructions, run.measured ? " (time as measured in the second step)" : "");
  if (run.measured)
    out +=
        " The line: what the system counts for the process after each of them, in the first step. The arena is "
        "reserved "
        "whole before it, so the line does not follow the areas; it has to stay below the planned peak.";
  return out + "</p>\n";
}

}  // namespace headroom::report
