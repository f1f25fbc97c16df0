#include "engine/null_run.h"

#include "runtime/executor.h"

namespace headroom {

TierBytes run_on_null(const Plan& plan, Device& device) {
  Executor executor(plan, device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : plan.programs) executor.run(program.name, trips);
  return {executor.arena_high_water(), executor.arena_high_water(Tier::host), executor.arena_high_water(Tier::disk)};
}

}  // namespace headroom
