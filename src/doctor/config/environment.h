// Variables set beside a command, and what they say.
#pragma once

#include <string>

#include "doctor/config/draft.h"

namespace headroom::doctor {

// Takes one NAME=value: allocator settings, visible devices, LLaMA-Factory's and llama.cpp's options; the rest is kept
// in job.environment.variables. The variable ends up in one of the job's lists, like a key.
void apply_environment(const Origin& origin, const std::string& name, const std::string& value, Draft& draft);

}  // namespace headroom::doctor
