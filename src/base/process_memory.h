// What the kernel says of this process's memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headroom {

// Largest resident set so far (VmHWM), bytes.
int64_t peak_resident_bytes();
// Resident set now (VmRSS), bytes. No heap call.
int64_t resident_bytes();

// Gives back what was needed up to here alone: free memory of the heap, and the pages of code and constants, of this
// program and its libraries, that start, options and planning have read; in another program's process those of this
// library alone. What runs on reads its own again, from the page cache: some hundred faults of a microsecond. They stay
// under a debugger, whose breakpoints lie in code. Thread-safe.
void release_what_is_behind();

// The peak that a run records, beside what it recorded on the way. The kernel sums its counters of the resident set
// again each time, and its peak can end a few pages below a sum that it gave out earlier.
class RecordedPeak {
 public:
  // `resident`: a resident set that was recorded, bytes.
  void include(int64_t resident) { highest_ = std::max(highest_, resident); }
  // VmHWM, or what was recorded where that is higher; bytes.
  int64_t bytes() const { return std::max(highest_, peak_resident_bytes()); }

 private:
  int64_t highest_ = 0;
};

}  // namespace headroom
