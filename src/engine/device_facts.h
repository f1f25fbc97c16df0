// The device for which a plan is made.
#pragma once

#include <string>

#include "options/machine_options.h"
#include "planner/request.h"

namespace headroom {

// The device facts for the options, and their profile. A named profile's own facts are used, so that a plan is the same
// wherever it is made; without one, those of this machine. Only the instruction set may be lowered, to this machine's,
// for a run on the CPU (options.runs_here).
DeviceFacts device_facts(const MachineOptions& options, Profile& profile);

// The device for which a plan is made: the option's; for a named profile of another device "null", which needs none.
std::string planning_device(const MachineOptions& options);

// How a run on this CPU differs from its named profile: a lower instruction set, for which a new plan is made, or
// another number of threads than this process could use. A line with the remedy; empty if nothing differs.
std::string profile_remark(const MachineOptions& options, const PlanRequest& request);

}  // namespace headroom
