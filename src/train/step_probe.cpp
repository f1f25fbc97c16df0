#include "train/step_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/process_memory.h"
#include "plan/step_memory.h"

namespace headroom {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The executor launches nothing for ops that only book scratch.
bool launches(const Instruction& instruction) {
  if (instruction.kind != InstructionKind::call) return false;
  return instruction.op->cost_class() != CostClass::none || !instruction.outputs.empty();
}

}  // namespace

StepProbe::StepProbe(const PlanProgram& program)
    : resident_(program.instructions.size()),
      seconds_(program.instructions.size()),
      calls_(program.instructions.size()) {
  size_t depth = 0;
  for (const Instruction& instruction : program.instructions) {
    launches_.push_back(launches(instruction));
    kinds_.push_back(static_cast<int32_t>(instruction.kind));
    depth += instruction.kind == InstructionKind::loop_begin;
  }
  loops_.reserve(depth);
}

void StepProbe::begin(int64_t trips) {
  at_ = 0, trips_ = trips, ++steps_;
  loops_.clear();
  std::fill(seconds_.begin(), seconds_.end(), 0.0);
  std::fill(calls_.begin(), calls_.end(), 0);
  skip_to_kernel();
  last_ = now();
}

void StepProbe::skip_to_kernel() {
  while (at_ < kinds_.size() && !launches_[at_]) {
    if (kinds_[at_] == static_cast<int32_t>(InstructionKind::loop_begin)) {
      loops_.push_back({static_cast<int32_t>(at_), trips_});
    } else if (kinds_[at_] == static_cast<int32_t>(InstructionKind::loop_end) && !loops_.empty()) {
      Loop& loop = loops_.back();
      if (--loop.left > 0)
        at_ = static_cast<size_t>(loop.begin);
      else
        loops_.pop_back();
    }
    ++at_;
  }
}

void StepProbe::after_kernel() {
  if (at_ >= kinds_.size()) return;
  if (steps_ == 1) resident_[at_] = std::max(resident_[at_], resident_bytes());
  const double end = now();
  seconds_[at_] += end - last_;
  ++calls_[at_];
  last_ = end;
  ++at_;
  skip_to_kernel();
}

int64_t StepProbe::highest_resident() const {
  return std::accumulate(resident_.begin(), resident_.end(), int64_t{0},
                         [](int64_t a, int64_t b) { return std::max(a, b); });
}

std::string StepProbe::json() const {
  const int32_t count = static_cast<int32_t>(kinds_.size());
  std::string text = fmt::format("{{\"instructions\": {}, \"micro_batches\": {},\n \"points\": [", count, trips_);
  for (int32_t point = 0; point < timeline_points(count); ++point) {
    const int32_t begin = stretch_begin(point, count), end = stretch_begin(point + 1, count);
    fmt::format_to(std::back_inserter(text), "{}\n  [{}, {}, {:.6f}]", point ? "," : "", begin,
                   *std::max_element(resident_.begin() + begin, resident_.begin() + end),
                   std::accumulate(seconds_.begin() + begin, seconds_.begin() + end, 0.0));
  }
  return text + "]}\n";
}

}  // namespace headroom
