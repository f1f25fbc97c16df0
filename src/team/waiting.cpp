#include "team/waiting.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>

namespace headroom::team {
namespace {

constexpr int kBlindTurns = 32;  // before the clock is read: most waits are over by then
constexpr int kTurnsPerLook = 16;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

ThreadTimes times_of_thread(int64_t clock) {
  ThreadTimes times{clock, 0, 0};
  timespec processor{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &processor) == 0)
    times.processor = int64_t{processor.tv_sec} * 1'000'000'000 + processor.tv_nsec;
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) == 0) times.forced_switches = usage.ru_nivcsw;
  return times;
}

}  // namespace

void SpinRule::switched(int64_t now) {
  if (now - last_.exchange(now, std::memory_order_relaxed) < kNear)
    busy_until_.store(now + kRemembered, std::memory_order_relaxed);
}

bool neighbours_between(const ThreadTimes& before, const ThreadTimes& after) {
  const int64_t lacking = (after.clock - before.clock) - (after.processor - before.processor);
  return after.forced_switches > before.forced_switches && lacking >= kTaken;
}

int64_t look_for_neighbours(SpinRule& rule) {
  thread_local constinit ThreadTimes before{INT64_MIN / 2, 0, INT64_MAX};
  const int64_t time = now();
  if (time - before.clock < SpinRule::kMillisecond) return time;
  const ThreadTimes times = times_of_thread(time);
  if (neighbours_between(before, times)) rule.switched(time);
  before = times;
  return time;
}

int this_cpu() { return ::sched_getcpu(); }

// The order on both sides: a sleeper first counts itself, then reads the number; the setter first writes, then reads
// the count.
void Signal::set(uint32_t value) {
  value_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0)
    ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool Signal::spin_blindly(uint32_t seen) const {
  for (int turn = 0; turn < kBlindTurns; ++turn) {
    if (read() != seen) return true;
    relax();
  }
  return false;
}

uint32_t Signal::wait_from(uint32_t seen, int64_t begin, int64_t spin) {
  while (now() - begin < spin)
    for (int turn = 0; turn < kTurnsPerLook; ++turn) {
      if (const uint32_t value = read(); value != seen) return value;
      relax();
    }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == seen)
    ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return read();
}

}  // namespace headroom::team
