#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

constexpr const char* kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// The most allocated bytes in each of `width` equal parts of the trace.
std::vector<int64_t> heights(const DeviceAnalysis& device, size_t width) {
  std::vector<int64_t> out(width, 0);
  const auto& columns = device.timeline;
  for (size_t c = 0; c < width; ++c) {
    const size_t begin = c * columns.size() / width;
    const size_t end = std::max(begin + 1, (c + 1) * columns.size() / width);
    for (size_t i = begin; i < std::min(end, columns.size()); ++i)
      out[c] = std::max(out[c], columns[i].allocated_bytes);
  }
  return out;
}

size_t column_of(const DeviceAnalysis& device, int64_t event, size_t width) {
  const auto at = static_cast<size_t>(std::max<int64_t>(0, event)) * width / static_cast<size_t>(device.events);
  return std::min(at, width - 1);
}

}  // namespace

std::string draw_text_timeline(const DeviceAnalysis& device, int columns, int rows) {
  if (device.timeline.empty() || device.peak.allocated_bytes <= 0 || columns <= 0 || rows <= 0) return {};
  const auto width = static_cast<size_t>(columns);
  const std::vector<int64_t> bytes = heights(device, width);
  std::string out;
  for (int row = rows; row-- > 0;) {
    std::string line;
    for (const int64_t value : bytes) {
      const double eighths = 8.0 * rows * static_cast<double>(value) / static_cast<double>(device.peak.allocated_bytes);
      line += kEighths[std::clamp(static_cast<int>(eighths + 0.5) - 8 * row, 0, 8)];
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  std::vector<const char*> marks(width, "─");
  if (device.peak.event >= 0) marks[column_of(device, device.peak.event, width)] = "^";
  for (const OutOfMemoryEvent& failure : device.failures) marks[column_of(device, failure.event, width)] = "!";
  for (const char* mark : marks) out += mark;
  return out + "\n";
}

}  // namespace headroom::doctor
