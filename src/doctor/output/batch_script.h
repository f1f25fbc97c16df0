// A job script that asks a scheduler for what the job needs.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// An sbatch script: GPUs, host memory and CPUs from the estimate with the smallest fitting set applied, and `command`
// as its last line. A `command` that is a batch script itself keeps its lines, but for those that ask for resources.
std::string batch_script(const Report& report, const std::string& command);

}  // namespace headroom::doctor
