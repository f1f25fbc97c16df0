// A run seen from another terminal: what its files say now, and whether its process still lives.
#pragma once

#include <optional>
#include <string>

#include "report/metrics_reader.h"
#include "report/run_files.h"

namespace headroom::report {

enum class RunState {
  absent,    // no run in the directory yet
  starting,  // a plan, no step yet
  running,
  finished,
  stopped,  // by a signal, after saving
  died,     // its process is gone and left no end
  silent,   // on another host, and nothing was written for a long time
};

class LiveView {
 public:
  explicit LiveView(std::filesystem::path directory);

  // Reads what is new. Returns whether anything changed. Throws Error(format) naming file and place.
  bool poll();
  RunState state() const { return state_; }
  bool over() const { return state_ == RunState::finished || state_ == RunState::stopped || state_ == RunState::died; }

  // The screen: lines of at most `columns` columns.
  std::string screen(size_t columns) const;
  // One plain line.
  std::string line() const;

 private:
  RunState run_state() const;
  std::string verdict() const;
  double seconds_left() const;
  int64_t total_steps() const { return process_ ? process_->total_steps : 0; }

  std::filesystem::path directory_;
  std::optional<PlanFile> plan_;
  std::optional<ProcessFile> process_;
  std::optional<EndFile> end_;
  MetricsReader metrics_;
  RunState state_ = RunState::absent;
};

// Whether the process of a record lives on this host. The kernel reuses process numbers: `start_ticks` tells them
// apart.
bool is_alive(const ProcessFile& process);

}  // namespace headroom::report
