// The server's counters as text for Prometheus, with vLLM's names, and headroom's own for bytes.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "engine/serving.h"
#include "generate/scheduler.h"

namespace headroom {

// A histogram of seconds.
class SecondsHistogram {
 public:
  void add(double seconds);
  // The lines of the histogram, with that name and help text.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 16> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                  0.5,   1,      2.5,   5,    10,    30,   60,  120};
  std::array<int64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

// May be used by several threads.
class ServerMetrics {
 public:
  using Clock = std::chrono::steady_clock;
  // Times of one sequence.
  struct Times {
    Clock::time_point begun = Clock::now(), last = begun;
    int64_t tokens = 0;
  };

  // Counts a request that was admitted.
  void request(int64_t prompt_tokens);
  void token(Times& times);
  void ended(const Times& times, SequenceEnd end);
  // Sets the scheduler's current counts.
  void set(const SchedulerCounts& counts);
  SchedulerCounts counts() const;

  // The text of /metrics. `plan`: null while the model is loading.
  std::string text(const ServingPlan* plan, int64_t arena_high_water) const;

 private:
  mutable std::mutex mutex_;
  SchedulerCounts counts_;
  int64_t prompt_tokens_ = 0;
  std::array<int64_t, 4> ends_{};  // by SequenceEnd; no_token counts as failed
  SecondsHistogram first_token_, between_tokens_, whole_;
};

}  // namespace headroom
