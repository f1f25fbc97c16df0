// How a thread of the team waits: it spins, and sleeps where that takes too long.
#pragma once

#include <atomic>
#include <cstdint>

namespace headroom::team {

// How long waiting threads spin. Where nothing else runs on the CPUs a long spin costs nothing, and a sleeper's wake-up
// some ten microseconds. Where others compute on the same CPUs, a thread that spins holds the CPU that a late one
// needs, and has used up its share when its turn comes: there it sleeps, and the kernel runs it soon after it is woken.
// Others show in the switches that a thread was forced to and that cost it time: the system's own threads take some
// microseconds each, neighbours take turns of a millisecond or more. One for the whole team; any thread may call.
class SpinRule {
 public:
  static constexpr int64_t kMillisecond = 1'000'000;
  static constexpr int64_t kQuietSpin = 5 * kMillisecond;
  static constexpr int64_t kBusySpin = 20'000;                // about what a wake-up costs
  static constexpr int64_t kNear = 20 * kMillisecond;         // between two switches: neighbours
  static constexpr int64_t kRemembered = 200 * kMillisecond;  // after the last of them

  // A thread was switched away, as seen at `now` (nanoseconds of any steady clock).
  void switched(int64_t now);
  bool busy(int64_t now) const { return now < busy_until_.load(std::memory_order_relaxed); }
  // Nanoseconds to spin in a wait that begins at `now`; `beside`: on the CPU of a thread that is waited for, which does
  // nothing until this one sleeps.
  int64_t spin(int64_t now, bool beside) const { return !busy(now) ? kQuietSpin : beside ? 0 : kBusySpin; }

 private:
  std::atomic<int64_t> last_{-kNear};
  std::atomic<int64_t> busy_until_{INT64_MIN};
};

// What a thread has had of its CPU so far, in nanoseconds, and how often it was switched away.
struct ThreadTimes {
  int64_t clock = 0;  // of any steady clock
  int64_t processor = 0;
  int64_t forced_switches = 0;
};

// Neighbours took the thread's CPU between two looks: it was switched away, and lacks at least kTaken of the time.
constexpr int64_t kTaken = 300'000;
bool neighbours_between(const ThreadTimes& before, const ThreadTimes& after);

// Tells `rule` when neighbours took this thread's CPU since it last looked, which it does every millisecond at most.
// Returns the time.
int64_t look_for_neighbours(SpinRule& rule);

int this_cpu();

// A number that threads wait on.
class Signal {
 public:
  uint32_t read() const { return value_.load(std::memory_order_acquire); }
  void set(uint32_t value);  // what was written before is seen by those whose wait ends
  // Until the number is another than `seen`; returns it. `beside`, asked where others are busy: whether a thread that
  // is waited for was last on the CPU that is given.
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
