// Environment variables set together with a command.
#pragma once

#include <string>

#include "doctor/config/draft.h"

namespace headroom::doctor {

// Reads one NAME=value: settings of the allocator, visible devices, options of LLaMA-Factory and llama.cpp. Others are
// kept in job.environment.variables. Like a key, the variable ends up in one of the job's lists.
void apply_environment(const Origin& origin, const std::string& name, const std::string& value, Draft& draft);

}  // namespace headroom::doctor
