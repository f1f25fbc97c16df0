// Facts that a log's words add to a job without a configuration: sharding, adapters, precision.
#pragma once

#include <string>

#include "doctor/config/job.h"

namespace headroom::doctor {

// `log` is in lower case. Does not change what the job already states.
void take_facts_of_log(const std::string& log, Job& job);

}  // namespace headroom::doctor
