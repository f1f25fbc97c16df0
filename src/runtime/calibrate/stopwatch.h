// The readings of a timing: the time, and evidence that other programs used the same CPUs meanwhile.
#pragma once

#include <cstdint>
#include <functional>

namespace headroom {

struct Reading {
  double seconds = 0;            // of a steady clock
  double processor_seconds = 0;  // computed by the calling thread
  int64_t forced_switches = 0;   // of all threads of the process, in favour of others
};
using Stopwatch = std::function<Reading()>;

Reading process_reading();  // of this process
Reading clock_reading();    // only the time, for a device that the host waits for

struct Timing {
  double seconds = 0;
  bool disturbed = false;
};

// Disturbed if a thread lost its CPU to another process, or if this thread had no CPU for more than a fiftieth of the
// time: it spins while it waits for its team, unless other programs are busy (src/team/waiting.h) or the hypervisor
// took the CPU away.
Timing between(const Reading& begin, const Reading& end);

}  // namespace headroom
