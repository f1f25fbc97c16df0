// What the kernel says of this process's memory.
#pragma once

#include <cstdint>

namespace headroom {

// Largest resident set so far (VmHWM), bytes.
int64_t peak_resident_bytes();
// Resident set now (VmRSS), bytes. No heap call.
int64_t resident_bytes();

}  // namespace headroom
