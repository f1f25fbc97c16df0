// What people read while it runs: the progress line, on stderr.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cli/messages.h"
#include "plan/plan.h"
#include "train/run_events.h"

namespace headroom {

// Columns of the terminal behind a file descriptor; 80 where there is none.
size_t terminal_columns(int file);

// "1:02:03" or "2:03".
std::string format_duration(double seconds);

// "mem 41.2 of plan 48.0 of 100 MiB": what a process uses, its planned peak, its budget, in the budget's unit.
std::string memory_in_use(int64_t used, int64_t planned, int64_t budget);

// Progress of a training run: one line rewritten in place on a terminal, without its less important parts where that is
// narrow; a line per step (at most one a second) otherwise.
class Progress {
 public:
  Progress(bool quiet, const Plan& plan);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { end(); }
  void step(const StepReport& report);
  void line(std::string_view text);  // a lasting line
  void end();

 private:
  // Within `columns`, if what never yields fits.
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
