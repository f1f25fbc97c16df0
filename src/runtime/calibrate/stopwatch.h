// What a timing is taken with: the time, and what shows that others computed on the same CPUs in between.
#pragma once

#include <cstdint>
#include <functional>

namespace headroom {

struct Reading {
  double seconds = 0;            // of a steady clock
  double processor_seconds = 0;  // that the calling thread computed
  int64_t forced_switches = 0;   // of all threads of the process, in favour of others
};
using Stopwatch = std::function<Reading()>;

Reading process_reading();  // of this process
Reading clock_reading();    // the time alone, for a device that the host waits for

struct Timing {
  double seconds = 0;
  bool disturbed = false;
};

// Disturbed when a thread lost its CPU to another process, or when this one had none for more than a fiftieth of the
// time: it spins where it waits for its team, unless others are busy (src/team/waiting.h) or the machine below took the
// CPU away.
Timing between(const Reading& begin, const Reading& end);

}  // namespace headroom
