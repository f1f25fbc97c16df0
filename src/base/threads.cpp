#include "base/threads.h"

#include <algorithm>
#include <thread>
#include <vector>

#ifdef HEADROOM_OPENMP
#include <omp.h>
#endif

#include "base/error.h"

namespace headroom {

#ifdef HEADROOM_OPENMP

void set_threads(int threads) {
  HR_CHECK(threads >= 1, "a team of {} threads", threads);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

int threads() { return omp_get_max_threads(); }

namespace {
void run_team(int team, int64_t count, int64_t piece, const RangeBody& body) {
#pragma omp parallel num_threads(team)
  {
    const int thread = omp_get_thread_num();
    const int64_t begin = std::min<int64_t>(count, thread * piece);
    const int64_t end = std::min<int64_t>(count, begin + piece);
    if (begin < end) body(begin, end, thread);
  }
}
}  // namespace

#else

namespace {
int& team_size() {
  static int size = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return size;
}
void run_team(int team, int64_t count, int64_t piece, const RangeBody& body) {
  std::vector<std::thread> workers;
  for (int thread = 1; thread < team; ++thread)
    workers.emplace_back([=, &body] {
      const int64_t begin = std::min<int64_t>(count, thread * piece);
      const int64_t end = std::min<int64_t>(count, begin + piece);
      if (begin < end) body(begin, end, thread);
    });
  body(0, std::min(count, piece), 0);
  for (std::thread& worker : workers) worker.join();
}
}  // namespace

void set_threads(int threads) {
  HR_CHECK(threads >= 1, "a team of {} threads", threads);
  team_size() = threads;
}

int threads() { return team_size(); }

#endif

void parallel_ranges(int64_t count, int64_t grain, const RangeBody& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t grains = (count + grain - 1) / grain;
  const int team = static_cast<int>(std::min<int64_t>(threads(), grains));
  const int64_t piece = (grains + team - 1) / team * grain;
  if (team == 1)
    body(0, count, 0);
  else
    run_team(team, count, piece, body);
}

}  // namespace headroom
