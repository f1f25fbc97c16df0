// What the words of a log say of a job that nobody configured: the stage of ZeRO that it runs under.
#pragma once

#include <string>

#include "doctor/config/job.h"

namespace headroom::doctor {

// `log` in lower case. A job that says how it shards is left as it is.
void take_sharding_of_log(const std::string& log, Job& job);

}  // namespace headroom::doctor
