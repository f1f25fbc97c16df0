// Whether the memory that stays alive between the steps of a trace grows, and which.
#pragma once

#include <vector>

#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/memory_instant.h"
#include "doctor/snapshot/snapshot_analysis.h"
#include "doctor/snapshot/timeline.h"

namespace headroom::doctor {

// Steps are found by the annotations of PyTorch's optimizers and profiler, else by the allocations of optimizer steps,
// else by a line of code that recurs through the whole trace. Memory grows if, after the first steps (which create the
// optimizer's states), three of four steps leave more than the step before, and together at least 1 MiB and 1 % of the
// peak.
AliveGrowth alive_growth(const Snapshot& snapshot, const DeviceReplay& replay, const Timeline& timeline,
                         const HolderNames& names);

}  // namespace headroom::doctor
