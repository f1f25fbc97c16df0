// What people read while it runs: the progress line, on stderr.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cli/messages.h"
#include "plan/plan.h"
#include "train/trainer.h"

namespace headroom {

// "1:02:03" or "2:03".
std::string format_duration(double seconds);

// Progress of a training run: one line rewritten in place on a terminal, a line per step (at most one a second)
// otherwise.
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
  std::string describe(const StepReport& report) const;

  bool quiet_;
  bool terminal_;
  bool line_open_ = false;
  int64_t budget_bytes_;
  double mean_seconds_ = 0;
  int64_t steps_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace headroom
