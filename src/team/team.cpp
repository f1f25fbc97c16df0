#include "team/team.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "team/waiting.h"

namespace headroom::team {
namespace {

constexpr uint32_t kMostThreads = 1u << 16;

struct Place {
  int number = 0;
  int size = 1;
  bool inside = false;
};

Place& place() {
  thread_local constinit Place here;
  return here;
}

struct alignas(64) Seat {
  // The CPU on which the thread was last seen. A thread that was woken but has not begun is usually still there.
  std::atomic<int> cpu{-1};
  std::atomic<bool> offered{false};  // a share of the running region is offered; whoever resets this has it
};

// One per process, like libgomp's: libraries that do not know each other share it. Nothing in it is ever destroyed,
// since its threads outlive main.
struct Team {
  std::mutex region;  // held by the thread that began the running region
  SpinRule rule;
  uint32_t workers = 0;
  Body body = nullptr;  // this and the next two are read by threads with a share: the region waits for them
  void* data = nullptr;
  uint32_t size = 1;
  Signal call;      // shares are offered
  Signal finished;  // the last worker is done
  alignas(64) std::atomic<uint32_t> running{0};
  Signal passed;  // a barrier
  alignas(64) std::atomic<uint32_t> arrived{0};
  Seat seats[kMostThreads];  // pages of threads that do not exist are never touched
};

Team& the_team() {
  static constinit Team team;
  return team;
}

bool sits_at(const Team& team, uint32_t number, int cpu) {
  return team.seats[number].cpu.load(std::memory_order_relaxed) == cpu;
}

bool worker_at(const Team& team, uint32_t size, int cpu) {
  for (uint32_t number = 1; number < size; ++number)
    if (sits_at(team, number, cpu)) return true;
  return false;
}

void run_as(const Place& as, Body body, void* data) {
  const Place before = place();
  place() = as;
  body(data);
  place() = before;
}

// Runs the share with a number, unless another thread has it.
bool run_share(Team& team, uint32_t number) {
  if (!team.seats[number].offered.exchange(false, std::memory_order_acq_rel)) return false;
  run_as({static_cast<int>(number), static_cast<int>(team.size), true}, team.body, team.data);
  return true;
}

void* work(void* argument) {
  Team& team = the_team();
  const auto number = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument));
  for (uint32_t seen = 0;;) {
    seen = team.call.wait(seen, team.rule, [&](int cpu) { return sits_at(team, 0, cpu); });
    team.seats[number].cpu.store(this_cpu(), std::memory_order_relaxed);
    if (run_share(team, number) && team.running.fetch_sub(1, std::memory_order_acq_rel) == 1)
      team.finished.set(team.finished.read() + 1);
  }
}

[[noreturn]] void end_without_thread(int cause) {
  char text[200] = "error: a thread of the team cannot start: ";
  std::strncat(text, std::strerror(cause), 60);
  std::strcat(text, " (out of memory, or too many threads)\n  give fewer --threads, or free memory\n");
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) ::_exit(1);
  ::_exit(1);
}

// Workers have the numbers 1, 2 ...; one that starts late finds the share that waits for it.
void start_workers(Team& team, uint32_t size) {
  for (; team.workers + 1 < size; ++team.workers) {
    pthread_t thread;
    const uintptr_t number = team.workers + 1;
    if (const int cause = ::pthread_create(&thread, nullptr, work, reinterpret_cast<void*>(number)); cause != 0)
      end_without_thread(cause);
    ::pthread_detach(thread);
  }
}

// Offers shares 1, 2 ... to their workers.
void offer(Team& team, Body body, void* data, uint32_t size) {
  team.body = body, team.data = data, team.size = size;
  team.running.store(size - 1, std::memory_order_relaxed);
  team.seats[0].cpu.store(this_cpu(), std::memory_order_relaxed);
  for (uint32_t number = 1; number < size; ++number) team.seats[number].offered.store(true, std::memory_order_release);
  team.call.set(team.call.read() + 1);
}

}  // namespace

void run(Body body, void* data, int size, Shares shares) {
  if (size <= 1 || place().inside) return run_as({0, 1, place().inside}, body, data);
  Team& team = the_team();
  const std::lock_guard<std::mutex> lock(team.region);
  const uint32_t threads = std::min(static_cast<uint32_t>(size), kMostThreads);
  start_workers(team, threads);
  const uint32_t finished = team.finished.read();
  look_for_neighbours(team.rule);
  offer(team, body, data, threads);
  run_as({0, static_cast<int>(threads), true}, body, data);
  uint32_t taken = 0;
  if (shares == Shares::independent)
    for (uint32_t number = 1; number < threads; ++number) taken += run_share(team, number) ? 1 : 0;
  if (taken > 0 && team.running.fetch_sub(taken, std::memory_order_acq_rel) == taken) return;
  team.finished.wait(finished, team.rule, [&](int cpu) { return worker_at(team, threads, cpu); });
}

int number() { return place().number; }
int size() { return place().size; }
bool inside() { return place().size > 1; }

void barrier() {
  const auto size = static_cast<uint32_t>(place().size);
  if (size == 1) return;
  Team& team = the_team();
  const uint32_t before = team.passed.read();
  if (team.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
    team.arrived.store(0, std::memory_order_relaxed);
    team.passed.set(before + 1);
  } else {
    team.passed.wait(before, team.rule, [&](int cpu) {
      const auto self = static_cast<uint32_t>(place().number);
      return (self != 0 && sits_at(team, 0, cpu)) || worker_at(team, size, cpu);
    });
  }
}

}  // namespace headroom::team
