// What people read during a run: the progress line, on stderr.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cli/messages.h"
#include "plan/plan.h"
#include "train/run_events.h"

namespace headroom {

// Columns of the terminal behind a file descriptor; 80 if it is not a terminal.
size_t terminal_columns(int file);

// "1:02:03" or "2:03".
std::string format_duration(double seconds);

// "mem 41.2 of plan 48.0 of 100 MiB": bytes that a process uses, its planned peak and its budget, in the budget's unit.
std::string memory_in_use(int64_t used, int64_t planned, int64_t budget);

// Progress of a training run: on a terminal one line, rewritten in place, without its less important parts if the
// terminal is narrow; elsewhere a line per step (at most one per second).
class Progress {
 public:
  Progress(bool quiet, const Plan& plan);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { end(); }
  void step(const StepReport& report);
  void line(std::string_view text);  // stays on the screen
  void end();

 private:
  // At most `columns` wide if the parts that never yield fit.
  std::string describe(const StepReport& report, size_t columns) const;

  bool quiet_;
  bool terminal_;
  bool line_open_ = false;
  int64_t budget_bytes_;
  int64_t planned_bytes_;
  double mean_seconds_ = 0;
  int64_t steps_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace headroom
