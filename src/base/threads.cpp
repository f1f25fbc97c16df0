#include "base/threads.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/error.h"

#ifdef HEADROOM_OPENMP
// g++'s entry point for a parallel region, called by name: clang's own would use the team of another library.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
// The same for shares that do not wait for each other, in programs that link src/team.
__attribute__((weak)) void headroom_parallel_shares(void (*body)(void*), void* data, unsigned threads);
int omp_get_max_threads() noexcept;
int omp_get_thread_num() noexcept;
void omp_set_dynamic(int dynamic) noexcept;
void omp_set_num_threads(int threads) noexcept;
}
#endif

namespace headroom {

#ifdef HEADROOM_OPENMP

void set_threads(int threads) {
  HR_CHECK(threads >= 1, "a team of {} threads", threads);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

int threads() { return omp_get_max_threads(); }

namespace {
struct Region {
  int64_t count, piece;
  const RangeBody& body;
};
void run_share(void* data) noexcept {
  const Region& region = *static_cast<const Region*>(data);
  const int thread = omp_get_thread_num();
  const int64_t begin = std::min<int64_t>(region.count, thread * region.piece);
  const int64_t end = std::min<int64_t>(region.count, begin + region.piece);
  if (begin < end) region.body(begin, end, thread);
}
void run_team(int team, int64_t count, int64_t piece, const RangeBody& body) {
  Region region{count, piece, body};
  if (headroom_parallel_shares)
    headroom_parallel_shares(run_share, &region, static_cast<unsigned>(team));
  else
    GOMP_parallel(run_share, &region, static_cast<unsigned>(team), 0);
}
}  // namespace

#else

namespace {
int& team_size() {
  thread_local int size = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
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
