// Whether what stays alive between the steps of a trace grows, and what.
#pragma once

#include <vector>

#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/memory_instant.h"
#include "doctor/snapshot/snapshot_analysis.h"
#include "doctor/snapshot/timeline.h"

namespace headroom::doctor {

// Steps are told by the annotations of PyTorch's optimizers and profiler, else by the allocations of optimizer steps,
// else by a line of code that recurs through the whole trace. It grows when, after the first steps (which make the
// optimizer's states), three of four steps leave more than the step before, and at least 1 MiB and 1 % of the peak in
// all.
AliveGrowth alive_growth(const Snapshot& snapshot, const DeviceReplay& replay, const Timeline& timeline,
                         const HolderNames& names);

}  // namespace headroom::doctor
