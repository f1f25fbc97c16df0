// How many threads a run uses, and the note when they will have to wait.
#include <gtest/gtest.h>
#include <sched.h>

#include "engine/budget.h"

namespace headroom {
namespace {

TEST(ProcessorLoad, TheAffinityBoundsTheTeam) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_threads(), 1);
  EXPECT_EQ(processor_load().allowed, 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(available_threads(), 1);
  EXPECT_LE(available_threads(), CPU_COUNT(&before));
}

TEST(ProcessorLoad, ARemarkNamesTheRemedy) {
  EXPECT_EQ(thread_remark(4, {4, 4, 0}, false), "");
  EXPECT_EQ(thread_remark(4, {4, 4, 0.5}, false), "");
  EXPECT_EQ(thread_remark(2, {4, 4, 2}, true), "") << "there are CPUs for all";
  const std::string busy = thread_remark(4, {4, 4, 3}, false);
  EXPECT_EQ(busy, "note: other programs keep 3 of 4 CPUs busy, which makes steps longer by that share");
  EXPECT_EQ(thread_remark(1, {4, 4, 9}, true),
            "note: other programs keep 4 of 4 CPUs busy, which makes steps longer by that share")
      << "one thread waits for no other";
  const std::string spinning = thread_remark(4, {4, 4, 3}, true);
  EXPECT_TRUE(spinning.starts_with(busy)) << spinning;
  EXPECT_NE(spinning.find("unset the OMP_ and GOMP_ environment variables"), std::string::npos) << spinning;
  const std::string many = thread_remark(8, {1, 4, 0}, true);
  EXPECT_NE(many.find("8 threads share the 1 CPU that"), std::string::npos) << many;
  EXPECT_NE(many.find("give --threads 1"), std::string::npos) << many;
}

}  // namespace
}  // namespace headroom
