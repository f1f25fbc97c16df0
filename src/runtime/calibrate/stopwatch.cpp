#include "runtime/calibrate/stopwatch.h"

#include <sys/resource.h>
#include <time.h>

namespace headroom {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

constexpr double kShareWithoutProcessor = 0.02;
constexpr double kResolution = 20e-6;  // of the computed time: interrupts, and the reading itself

}  // namespace

Reading process_reading() {
  rusage usage{};
  const int64_t switches = ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
  const double processor = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  return {seconds_of(CLOCK_MONOTONIC), processor, switches};
}

Reading clock_reading() {
  const double seconds = seconds_of(CLOCK_MONOTONIC);
  return {seconds, seconds, 0};
}

Timing between(const Reading& begin, const Reading& end) {
  const double seconds = end.seconds - begin.seconds;
  const double without = seconds - (end.processor_seconds - begin.processor_seconds);
  return {seconds,
          end.forced_switches > begin.forced_switches || without > kShareWithoutProcessor * seconds + kResolution};
}

}  // namespace headroom
