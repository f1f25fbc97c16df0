#include "engine/null_run.h"

#include <fmt/format.h>

#include "runtime/executor.h"

namespace headroom {

TierBytes run_on_null(const Plan& plan, Device& device) {
  Executor executor(plan, device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : plan.programs) executor.run(program.name, trips);
  return {executor.arena_high_water(), executor.arena_high_water(Tier::host), executor.arena_high_water(Tier::disk)};
}

std::string null_run_note(const std::string& device, const Plan& plan) {
  if (device_kind(device) != DeviceKind::null) return {};
  const TierBytes highest = run_on_null(plan, *make_null_device(plan.facts));
  std::string note = fmt::format("null device: {} programs ran, highest access at {} of {} bytes", plan.programs.size(),
                                 highest.device, plan.arena_bytes);
  for (const Tier tier : kLowerTiers)
    if (const int64_t bytes = plan.below(tier).arena_bytes; bytes > 0)
      note += fmt::format(", of the {} at {} of {}", tier_name(tier), highest.of(tier), bytes);
  return note;
}

}  // namespace headroom
