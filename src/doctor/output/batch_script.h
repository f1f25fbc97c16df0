// Writes a job script that asks a scheduler for what the job needs.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// An sbatch script: GPUs, host memory and CPUs from the estimate with the smallest fitting set applied, and `command`
// as the last line. If `command` is itself a batch script, its lines are kept, except those that ask for resources.
std::string batch_script(const Report& report, const std::string& command);

}  // namespace headroom::doctor
