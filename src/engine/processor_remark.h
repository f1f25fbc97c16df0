// A note if the threads of a run will not get enough CPU time.
#pragma once

#include <string>

namespace headroom {

// For a run on `device` (empty except for the CPU) with `threads`: thread_remark() for the machine's current load.
std::string processor_remark(const std::string& device, int threads);

}  // namespace headroom
