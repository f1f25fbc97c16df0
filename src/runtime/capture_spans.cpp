// Spans of kernels that the device launches by one call.
#include <algorithm>

#include "runtime/executor.h"

namespace headroom {
namespace {

constexpr int kFewestKernels = 2;  // launching a single one is as fast

}  // namespace

// The end of the longest span from here whose kernels can be replayed: it contains no copy, no wait for one and no end
// of a loop.
size_t Executor::replaying_until(const Prepared& program, size_t begin) const {
  const auto replays = [](const Step& step) {
    return step.kind == InstructionKind::call &&
           (step.action == Action::none || (step.action == Action::kernel && step.kernel->replays()));
  };
  const auto end =
      std::find_if_not(program.steps.begin() + static_cast<ptrdiff_t>(begin), program.steps.end(), replays);
  return static_cast<size_t>(end - program.steps.begin());
}

void Executor::capture(Prepared& program) {
  int depth = 0;
  for (size_t at = 0; at < program.steps.size(); ++at) {
    Step& step = program.steps[at];
    if (step.kind == InstructionKind::loop_begin) ++depth;
    if (step.kind == InstructionKind::loop_end) --depth;
    if (step.action != Action::kernel) continue;
    const size_t end = replaying_until(program, at);
    if (end == at) continue;
    const auto first = program.steps.begin() + static_cast<ptrdiff_t>(at);
    const auto last = program.steps.begin() + static_cast<ptrdiff_t>(end);
    const auto is_kernel = [](const Step& s) { return s.action == Action::kernel; };
    const auto queue_in = [&](int64_t trip) {
      return device_.capture([&] {
        for (auto s = first; s != last; ++s)
          if (is_kernel(*s)) run_call(program, *s, trip);
      });
    };
    if (std::count_if(first, last, is_kernel) >= kFewestKernels) {
      step.first_trip = queue_in(0);
      if (depth > 0 && step.first_trip) step.later_trip = queue_in(1);
      step.span_end = end;
      for (auto s = first; s != last; ++s)
        for (const Tier tier : kArenaTiers)
          step.end_offset.of(tier) = std::max(step.end_offset.of(tier), s->end_offset.of(tier));
    }
    at = end - 1;
  }
}

bool Executor::replay(const Step& step, int64_t trip) {
  const std::optional<CaptureId>& capture = trip == 0 ? step.first_trip : step.later_trip;
  if (capture) device_.replay(*capture);
  return capture.has_value();
}

}  // namespace headroom
