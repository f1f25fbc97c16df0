// How a thread of the team waits: it spins, and sleeps if that takes too long.
#pragma once

#include <atomic>
#include <cstdint>

namespace headroom::team {

// How long waiting threads spin. If nothing else runs on the CPUs a long spin costs nothing, while waking a sleeper
// takes some ten microseconds. If other programs compute on the same CPUs, a spinning thread holds the CPU that a late
// one needs, and has used up its share when its turn comes: there it sleeps, and the kernel runs it soon after it is
// woken. Other programs are detected by involuntary switches that cost a thread time: the system's own threads take
// some microseconds each, other programs a millisecond or more. One object for the whole team; any thread may call.
class SpinRule {
 public:
  static constexpr int64_t kMillisecond = 1'000'000;
  static constexpr int64_t kQuietSpin = 5 * kMillisecond;
  static constexpr int64_t kBusySpin = 20'000;                // about the cost of a wake-up
  static constexpr int64_t kNear = 20 * kMillisecond;         // between two switches: other programs
  static constexpr int64_t kRemembered = 200 * kMillisecond;  // after the last of them

  // A thread was switched away, as seen at `now` (nanoseconds of any steady clock).
  void switched(int64_t now);
  bool busy(int64_t now) const { return now < busy_until_.load(std::memory_order_relaxed); }
  // Nanoseconds to spin in a wait that begins at `now`; `beside`: on the CPU of a thread that is waited for, which
  // cannot run until this one sleeps.
  int64_t spin(int64_t now, bool beside) const { return !busy(now) ? kQuietSpin : beside ? 0 : kBusySpin; }

 private:
  std::atomic<int64_t> last_{-kNear};
  std::atomic<int64_t> busy_until_{INT64_MIN};
};

// A thread's CPU time so far, in nanoseconds, and how often it was switched away.
struct ThreadTimes {
  int64_t clock = 0;  // of any steady clock
  int64_t processor = 0;
  int64_t forced_switches = 0;
};

// Whether other programs took the thread's CPU between two readings: it was switched away, and lacks at least kTaken of
// the time.
constexpr int64_t kTaken = 300'000;
bool neighbours_between(const ThreadTimes& before, const ThreadTimes& after);

// Tells `rule` if other programs took this thread's CPU since the last reading, at most once a millisecond. Returns the
// time.
int64_t look_for_neighbours(SpinRule& rule);

int this_cpu();

// A number that threads wait on.
class Signal {
 public:
  uint32_t read() const { return value_.load(std::memory_order_acquire); }
  void set(uint32_t value);  // earlier writes are visible to those whose wait ends
  // Waits until the number differs from `seen`; returns it. `beside` is called if other programs are busy: whether a
  // thread that is waited for was last on the given CPU.
  template <typename Beside>
  uint32_t wait(uint32_t seen, SpinRule& rule, const Beside& beside) {
    if (spin_blindly(seen)) return read();
    const int64_t begin = look_for_neighbours(rule);
    return wait_from(seen, begin, rule.spin(begin, rule.busy(begin) && beside(this_cpu())));
  }

 private:
  bool spin_blindly(uint32_t seen) const;  // whether the wait is over
  uint32_t wait_from(uint32_t seen, int64_t begin, int64_t spin);

  alignas(64) std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace headroom::team
