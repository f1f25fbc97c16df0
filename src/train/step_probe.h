// Measures a step's kernels: the resident set after each in the first step, its seconds in the second.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace headroom {

// Follows a program through its loops; called after each kernel. Allocates only in the constructor.
class StepProbe {
 public:
  explicit StepProbe(const PlanProgram& program);

  // Before a step; `trips` of every loop. The first step measures memory, the last begun one time.
  void begin(int64_t trips);
  // After each kernel of the step, in order.
  void after_kernel();
  // measured.json: a row of [first instruction, resident bytes, seconds] per point of the timeline; at most 24 KiB.
  // docs/report.md.
  std::string json() const;
  // The largest resident set in json(), bytes.
  int64_t highest_resident() const;
  // By instruction, for the last begun step.
  std::span<const double> seconds() const { return seconds_; }
  std::span<const int64_t> calls() const { return calls_; }

 private:
  struct Loop {
    int32_t begin = 0;
    int64_t left = 0;
  };

  void skip_to_kernel();

  std::vector<bool> launches_;  // by instruction: a kernel runs
  std::vector<int32_t> kinds_;  // 0 call, 1 loop begin, 2 loop end
  std::vector<int64_t> resident_;
  std::vector<double> seconds_;
  std::vector<int64_t> calls_;
  std::vector<Loop> loops_;
  size_t at_ = 0;
  int64_t trips_ = 0;
  int64_t steps_ = 0;
  double last_ = 0;
};

}  // namespace headroom
