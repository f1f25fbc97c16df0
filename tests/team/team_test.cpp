// Regions of the team, as started by headroom's kernels and by oneDNN.
#include "team/team.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/openmp_environment.h"
#include "base/threads.h"

namespace headroom {
namespace {

// Runs `body` on each thread of a region.
template <typename F>
void region(int size, F body, team::Shares shares = team::Shares::together) {
  team::run([](void* data) { (*static_cast<F*>(data))(); }, &body, size, shares);
}

TEST(Team, EachThreadRunsOnce) {
  for (int size : {1, 2, 5, 3, 8, 2, 1, 4}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(size));
    region(size, [&] {
      EXPECT_EQ(team::size(), size);
      ++runs[static_cast<size_t>(team::number())];
    });
    for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
    EXPECT_EQ(team::number(), 0);
    EXPECT_EQ(team::size(), 1);
  }
}

TEST(Team, ShortRegionsFollowEachOther) {
  int64_t sums[3][8] = {};
  for (int64_t round = 0; round < 20000; ++round)
    region(round % 7 == 0 ? 2 : 3, [&] { sums[team::number()][0] += round; });
  EXPECT_EQ(sums[0][0], sums[1][0]);
  EXPECT_EQ(sums[0][0], int64_t{20000} * 19999 / 2);
}

TEST(Team, IndependentSharesRunOnceWhoeverHasThem) {
  for (int round = 0; round < 20000; ++round) {
    std::atomic<int> runs[5] = {};
    const int size = 2 + round % 4;
    region(
        size, [&] { ++runs[team::number()]; }, team::Shares::independent);
    for (int number = 0; number < 5; ++number) ASSERT_EQ(runs[number], number < size ? 1 : 0) << round;
  }
}

// Sleeping workers take some microseconds to wake up; a region without any work is over earlier.
TEST(Team, AShareThatNobodyBeganIsTakenOver) {
  const auto caller = std::this_thread::get_id();
  int taken = 0;
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> mine = 0;
    region(
        3, [&] { mine += std::this_thread::get_id() == caller ? 1 : 0; }, team::Shares::independent);
    EXPECT_GE(mine, 1);
    taken += mine - 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(8));  // longer than threads spin
  }
  EXPECT_GT(taken, 0);
}

TEST(Team, ARegionInsideARegionRunsAlone) {
  std::atomic<int> inner = 0;
  region(3, [&] {
    const int outer = team::number();
    region(4, [&] {
      EXPECT_EQ(team::number(), 0);
      EXPECT_EQ(team::size(), 1);
      team::barrier();
      ++inner;
    });
    EXPECT_EQ(team::number(), outer);
    EXPECT_EQ(team::size(), 3);
  });
  EXPECT_EQ(inner, 3);
}

TEST(Team, ABarrierHoldsAll) {
  for (int round = 0; round < 300; ++round) {
    std::atomic<int> before = 0, between = 0;
    region(4, [&] {
      ++before;
      team::barrier();
      EXPECT_EQ(before, 4);
      ++between;
      team::barrier();
      EXPECT_EQ(between, 4);
    });
  }
}

TEST(Team, RegionsOfSeveralThreadsTakeTurns) {
  std::vector<std::thread> callers;
  std::vector<std::atomic<int>> runs(3);
  std::atomic<int> at_once = 0;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 200; ++round)
        region(2, [&] {
          EXPECT_LE(++at_once, 2);
          ++runs[static_cast<size_t>(caller)];
          --at_once;
        });
    });
  for (std::thread& caller : callers) caller.join();
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 400);
}

// A region compiled by the compiler, like oneDNN's, and one of headroom's own kernels.
TEST(Team, RunsWhatOpenMpAsksFor) {
  if (openmp_set_up()) GTEST_SKIP() << "the environment sets libgomp up";
  set_threads(3);
  EXPECT_EQ(omp_get_max_threads(), 3);
  std::atomic<int> threads = 0;
  EXPECT_EQ(omp_in_parallel(), 0);
  parallel_for(300, 1, [&](int64_t begin, int64_t end, int thread) {
    EXPECT_EQ(end - begin, 100);
    EXPECT_EQ(thread, team::number());
    EXPECT_EQ(omp_get_num_threads(), 3);
    EXPECT_EQ(omp_get_thread_num(), thread);
    EXPECT_NE(omp_in_parallel(), 0);
    ++threads;
  });
  EXPECT_EQ(threads, 3);
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The worst busy machine: all threads on one CPU. A waiting thread there delays the thread for which it waits, so a
// region may not take much more CPU time than a sleep and a wake-up per thread, about 20 us. Spinning threads would use
// up the rest of a scheduler's time slice, a millisecond or more, whatever else runs on the machine.
TEST(Team, OnOneCpuNobodySpinsAwayALateThreadsTime) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  double seconds = 0;
  constexpr int kRegions = 2000;
  std::thread caller([&] {  // a new thread, whose workers start on its CPU
    region(5, [&] { ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0); });
    for (int round = 0; round < 200; ++round) region(5, [] {});
    const double start = processor_seconds();
    for (int round = 0; round < kRegions; ++round) region(5, [] {});
    seconds = processor_seconds() - start;
    region(5, [&] { ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0); });
  });
  caller.join();
  EXPECT_LT(seconds / kRegions, 400e-6);
}

// If an OpenMP variable is set, libgomp runs the regions and knows their level.
TEST(Environment, TheUsersSettingsWin) {
  EXPECT_EQ(openmp_set_up(), std::getenv("HEADROOM_EXPECT_LIBGOMP") != nullptr);
  set_threads(2);
  std::atomic<int> runs = 0, levels = 0;
  parallel_for(2, 1, [&](int64_t, int64_t, int) {
    ++runs;
    levels += omp_get_level();
  });
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(levels, openmp_set_up() ? 2 : 0);
}

}  // namespace
}  // namespace headroom
