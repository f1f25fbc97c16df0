#include "cli/terminal.h"

#include <fmt/color.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/process_memory.h"

namespace headroom {
namespace {

double share_done(const StepReport& report) {
  return static_cast<double>(report.step) / static_cast<double>(std::max<int64_t>(1, report.total_steps));
}

// One line that never wraps: a bar if there is room for it, then the text, cut at the edge.
std::string fit_to_terminal(std::string text, double done) {
  const size_t columns = terminal_columns(STDERR_FILENO);
  if (text.size() >= columns) return text.substr(0, columns - 1);
  const size_t width = std::min<size_t>(20, columns - 1 - text.size());
  if (width < 6) return text;
  std::string bar;
  for (size_t i = 0; i + 1 < width; ++i)
    bar += static_cast<double>(i) < done * static_cast<double>(width - 1) ? "█" : "░";
  return bar + ' ' + text;
}

// A part of the line; parts with the highest `yields` are dropped first, those with 0 never.
struct Part {
  std::string text;
  int yields = 0;
};

// Joins the parts with two spaces, dropping those that yield most until the line fits.
std::string join_within(std::vector<Part> parts, size_t columns) {
  while (true) {
    std::string line;
    for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
    const auto most =
        std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.yields < b.yields; });
    if (line.size() < columns || most->yields == 0) return line;
    parts.erase(most);
  }
}

}  // namespace

size_t terminal_columns(int file) {
  winsize size{};
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

std::string memory_in_use(int64_t used, int64_t planned, int64_t budget) {
  const std::string limit = format_bytes(budget), unit = limit.substr(limit.find(' '));
  const auto amount = [&](int64_t bytes) {
    std::string text = format_bytes(bytes);
    if (text.ends_with(unit)) text.resize(text.size() - unit.size());
    return text;
  };
  return fmt::format("mem {} of plan {} of {}", amount(used), amount(planned), limit);
}

std::string format_duration(double seconds) {
  const int64_t whole = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

Progress::Progress(bool quiet, const Plan& plan)
    : quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO)),
      budget_bytes_(plan.budget_bytes),
      planned_bytes_(plan.peak_bytes) {}

std::string Progress::describe(const StepReport& report, size_t columns) const {
  const double left = mean_seconds_ * static_cast<double>(report.total_steps - report.step);
  std::vector<Part> parts{
      {fmt::format("{:3.0f}%  step {}/{}", share_done(report) * 100, report.step, report.total_steps)},
      {fmt::format("loss {:.4f}", report.loss)}};
  if (report.accuracy) parts.push_back({fmt::format("accuracy {:.3f}", *report.accuracy), 1});
  parts.push_back({fmt::format("lr {:.2e}", report.learning_rate), 5});
  if (report.samples > 0) parts.push_back({fmt::format("{:.1f} samples/s", report.per_second(report.samples)), 2});
  parts.push_back({fmt::format("{:.0f} tok/s", report.per_second(report.tokens)), report.samples > 0 ? 4 : 2});
  parts.push_back({fmt::format("left {}", format_duration(left)), 3});
  parts.push_back({memory_in_use(resident_bytes(), planned_bytes_, budget_bytes_)});
  return join_within(std::move(parts), columns);
}

void Progress::step(const StepReport& report) {
  ++steps_;
  const double weight = std::max(0.05, 1.0 / static_cast<double>(steps_));
  mean_seconds_ += weight * (report.seconds - mean_seconds_);
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  const bool last = report.step == report.total_steps;
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(1000);
  if (!last && steps_ > 1 && now - last_ < pause) return;
  last_ = now;
  const std::string text = describe(report, terminal_ ? terminal_columns(STDERR_FILENO) : SIZE_MAX);
  if (terminal_) {
    write_stderr(fmt::format("\r{}\x1b[K", fit_to_terminal(text, share_done(report))));
    line_open_ = true;
  } else {
    print_note(text);
  }
}

void Progress::line(std::string_view text) {
  if (quiet_) return;
  end();
  print_note(text);
}

void Progress::end() {
  if (line_open_) write_stderr("\n");
  line_open_ = false;
}

}  // namespace headroom
