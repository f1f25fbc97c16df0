// A note where the threads of a run will not get the CPUs that they wait for.
#pragma once

#include <string>

namespace headroom {

// On stderr, for a run on `device` (nothing but for the CPU) with `threads`: what
// thread_remark() says of the machine as it is now.
void note_processors(const std::string& device, int threads);

}  // namespace headroom
