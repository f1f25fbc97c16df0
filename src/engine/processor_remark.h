// A remark where the threads of a run will not get the CPUs that they wait for.
#pragma once

#include <string>

namespace headroom {

// For a run on `device` (empty but for the CPU) with `threads`: what thread_remark() says of the machine as it is now.
std::string processor_remark(const std::string& device, int threads);

}  // namespace headroom
