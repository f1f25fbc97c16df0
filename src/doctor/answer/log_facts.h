// What the log's words add to a job without a configuration: sharding, adapters, the type of numbers.
#pragma once

#include <string>

#include "doctor/config/job.h"

namespace headroom::doctor {

// `log` in lower case. What the job states already stays.
void take_facts_of_log(const std::string& log, Job& job);

}  // namespace headroom::doctor
