#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "doctor/snapshot/clean_text.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

// All lengths are in units of the view box.
constexpr double kWidth = 1000, kLeft = 76, kRight = 16, kTop = 40, kPlot = 260, kBelow = 40, kLegendRow = 20;
constexpr double kPlotWidth = kWidth - kLeft - kRight;

constexpr const char* kStyle =
    "<style>.hrs{font:13px system-ui,sans-serif;--ink:#1b1d21;--soft:#63676f;--line:#d9dce1;--mark:#c2362b}"
    "@media(prefers-color-scheme:dark){.hrs{--ink:#e8e9eb;--soft:#9ea3ab;--line:#3a3e45;--mark:#ff8478}}"
    ".hrs text{fill:var(--ink)}.hrs .s{fill:var(--soft)}.hrs .g{stroke:var(--line)}"
    ".hrs .r{stroke:var(--ink);fill:none;stroke-width:1.5;stroke-dasharray:5 3}"
    ".hrs .m{stroke:var(--mark);stroke-width:1.5}.hrs .t{fill:var(--mark)}</style>\n";

// Indexed by MemoryClass; distinguishable with any colour vision (Okabe and Ito 2008, extended by shades), in light and
// dark mode.
constexpr const char* kColours[] = {"#0072b2", "#009e73", "#66c2a5", "#e69f00", "#d55e00", "#f0c75e", "#cc79a7",
                                    "#56b4e9", "#8c6bb1", "#b8a800", "#4d9221", "#7a7f87", "#a9adb3", "#c5c8cc"};
static_assert(std::size(kColours) == kMemoryClasses);

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : clean_text(text)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

// The smallest power of two that gives at most five lines.
int64_t tick_of(int64_t most) {
  int64_t tick = 1;
  while (most / tick > 5) tick *= 2;
  return tick;
}

class DeviceChart {
 public:
  DeviceChart(const DeviceAnalysis& device, double top) : device_(device), top_(top) {
    for (const TimelineColumn& column : device.timeline)
      most_ = std::max({most_, column.allocated_bytes, column.reserved_bytes});
    most_ = std::max<int64_t>(1, most_);
    for (size_t i = 0; i < kMemoryClasses; ++i)
      if (std::any_of(device.timeline.begin(), device.timeline.end(), [&](const auto& c) { return c.by_class[i] > 0; }))
        classes_.push_back(i);
  }

  double height() const { return kTop + kPlot + kBelow + kLegendRow * static_cast<double>((classes_.size() + 4) / 4); }

  std::string draw() const {
    std::string out = fmt::format(
        "<text x=\"{}\" y=\"{:.0f}\">device {}: peak {} in tensors, {} reserved at most</text>\n", kLeft, top_ + 18,
        device_.device, format_bytes(device_.peak.allocated_bytes), format_bytes(device_.peak_reserved_bytes));
    grid(out);
    areas(out);
    reserved(out);
    marks(out);
    legend(out);
    return out;
  }

 private:
  double x(size_t column) const {
    return kLeft + kPlotWidth * static_cast<double>(column) / static_cast<double>(device_.timeline.size());
  }
  double x_of_event(int64_t event) const {
    return kLeft + kPlotWidth * (static_cast<double>(std::max<int64_t>(0, event)) + 0.5) /
                       static_cast<double>(std::max<int64_t>(1, device_.events));
  }
  double y(int64_t bytes) const {
    return top_ + kTop + kPlot * (1 - static_cast<double>(bytes) / static_cast<double>(most_));
  }

  void grid(std::string& out) const {
    const int64_t tick = tick_of(most_);
    for (int64_t bytes = 0; bytes <= most_; bytes += tick) {
      out += fmt::format("<path class=\"g\" d=\"M{} {:.1f}H{}\"/>", kLeft, y(bytes), kWidth - kRight);
      out += fmt::format("<text class=\"s\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6,
                         y(bytes) + 4, format_bytes(bytes));
    }
    const double below = top_ + kTop + kPlot + 18;
    out += fmt::format("<text class=\"s\" x=\"{}\" y=\"{:.0f}\">event 0</text>", kLeft, below);
    const std::string seconds = device_.seconds > 0 ? fmt::format(", {:.3g} s", device_.seconds) : std::string();
    out += fmt::format("<text class=\"s\" x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">event {}{}</text>\n",
                       kWidth - kRight, below, device_.events, seconds);
  }

  void areas(std::string& out) const {
    std::vector<int64_t> base(device_.timeline.size(), 0);
    for (const size_t kind : classes_) {
      std::vector<int64_t> upper = base;
      for (size_t c = 0; c < base.size(); ++c) upper[c] += device_.timeline[c].by_class[kind];
      out += fmt::format("<path fill=\"{}\" d=\"M{:.1f} {:.1f}", kColours[kind], x(0), y(base[0]));
      for (size_t c = 0; c < upper.size(); ++c) step(out, upper, c);
      out += fmt::format("V{:.1f}", y(base.back()));
      for (size_t c = base.size(); c-- > 0;) {
        if (c > 0 && base[c] == base[c - 1]) continue;
        out += fmt::format("H{:.1f}", x(c));
        if (c > 0) out += fmt::format("V{:.1f}", y(base[c - 1]));
      }
      out += fmt::format("Z\"><title>{}, {} at the peak</title></path>\n",
                         memory_class_title(static_cast<MemoryClass>(kind)), format_bytes(device_.peak.by_class[kind]));
      base = std::move(upper);
    }
  }

  // From the left to the right edge of column `c`, at its height.
  void step(std::string& out, const std::vector<int64_t>& heights, size_t c) const {
    if (c == 0 || heights[c] != heights[c - 1]) out += fmt::format("V{:.1f}", y(heights[c]));
    if (c + 1 == heights.size() || heights[c + 1] != heights[c]) out += fmt::format("H{:.1f}", x(c + 1));
  }

  void reserved(std::string& out) const {
    std::vector<int64_t> heights;
    for (const TimelineColumn& column : device_.timeline) heights.push_back(column.reserved_bytes);
    out += fmt::format("<path class=\"r\" d=\"M{:.1f} {:.1f}", x(0), y(heights[0]));
    for (size_t c = 0; c < heights.size(); ++c) step(out, heights, c);
    out += "\"><title>reserved</title></path>\n";
  }

  void mark(std::string& out, int64_t event, const std::string& label, double row) const {
    const double at = x_of_event(event);
    const bool right = at > kWidth / 2;
    out += fmt::format("<path class=\"m\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>", at, top_ + kTop - 4, top_ + kTop + kPlot);
    out += fmt::format("<text class=\"t\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                       at + (right ? -4 : 4), top_ + kTop + row, right ? "end" : "start", escaped(label));
  }

  void marks(std::string& out) const {
    if (device_.peak.event >= 0) mark(out, device_.peak.event, "peak", -8);
    for (const OutOfMemoryEvent& failure : device_.failures) {
      std::string label;  // of the last column
      if (&failure == &device_.failures.back())
        label = fmt::format("out of memory: {} asked for", format_bytes(failure.requested_bytes));
      mark(out, failure.event, label, 14);
    }
  }

  void legend(std::string& out) const {
    double top = top_ + kTop + kPlot + kBelow;
    size_t i = 0;
    const auto place = [&] { return kLeft + kPlotWidth / 4 * static_cast<double>(i % 4); };
    for (const size_t kind : classes_) {
      out += fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"11\" height=\"11\" fill=\"{}\"/>", place(), top - 10,
                         kColours[kind]);
      out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", place() + 16, top,
                         memory_class_title(static_cast<MemoryClass>(kind)));
      if (++i % 4 == 0) top += kLegendRow;
    }
    out +=
        fmt::format("<path class=\"r\" d=\"M{0:.0f} {1:.0f}h12\"/><text x=\"{2:.0f}\" y=\"{3:.0f}\">reserved</text>\n",
                    place(), top - 4, place() + 16, top);
  }

  const DeviceAnalysis& device_;
  double top_;
  int64_t most_ = 0;
  std::vector<size_t> classes_;
};

}  // namespace

std::string snapshot_svg(const SnapshotAnalysis& analysis) {
  std::string charts;
  double top = 0;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.timeline.empty()) continue;
    const DeviceChart chart(device, top);
    charts += chart.draw();
    top += chart.height();
  }
  if (charts.empty()) return {};
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hrs\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
             "aria-label=\"memory over time of {}\">\n",
             kWidth, top, escaped(analysis.source)) +
         kStyle + charts + "</svg>\n";
}

}  // namespace headroom::doctor
