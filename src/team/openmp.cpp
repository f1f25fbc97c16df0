// The entry points of libgomp that headroom's kernels and oneDNN call. A program's own definitions come before a
// library's, so one team runs both. No library of the program may use other entry points (tests/team checks this).
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/openmp_environment.h"
#include "team/team.h"

namespace headroom::team {
namespace {

// libgomp itself, which runs everything if the environment configures it.
struct Libgomp {
  void (*parallel)(Body, void*, unsigned, unsigned) = nullptr;
  void (*barrier)() = nullptr;
  int (*max_threads)() = nullptr;
  int (*num_threads)() = nullptr;
  int (*thread_num)() = nullptr;
  int (*in_parallel)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
  void (*set_dynamic)(int) = nullptr;
};

template <typename F>
bool find(F*& function, const char* name) {
  function = reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
  return function != nullptr;
}

const Libgomp* libgomp() {
  static const Libgomp functions = [] {
    Libgomp found;
    if (!openmp_set_up()) return Libgomp();
    const bool whole = find(found.parallel, "GOMP_parallel") && find(found.barrier, "GOMP_barrier") &&
                       find(found.max_threads, "omp_get_max_threads") &&
                       find(found.num_threads, "omp_get_num_threads") && find(found.thread_num, "omp_get_thread_num") &&
                       find(found.in_parallel, "omp_in_parallel") &&
                       find(found.set_num_threads, "omp_set_num_threads") && find(found.set_dynamic, "omp_set_dynamic");
    return whole ? found : Libgomp();
  }();
  return functions.parallel ? &functions : nullptr;
}

int first_size() {
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  const int number = asked ? std::atoi(asked) : 0;  // the first of a list
  return number > 0 ? number : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// For regions that this thread begins without giving a number: as in OpenMP, each thread sets its own.
int& usual_size() {
  static const int first = first_size();
  thread_local int size = first;
  return size;
}

}  // namespace
}  // namespace headroom::team

namespace team = headroom::team;

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  if (const team::Libgomp* const own = team::libgomp()) return own->parallel(body, data, threads, flags);
  team::run(body, data, threads > 0 ? static_cast<int>(threads) : team::usual_size(), team::Shares::together);
}

// Not part of OpenMP: base/threads.cpp calls it if it exists.
void headroom_parallel_shares(void (*body)(void*), void* data, unsigned threads) {
  if (const team::Libgomp* const own = team::libgomp()) return own->parallel(body, data, threads, 0);
  team::run(body, data, static_cast<int>(threads), team::Shares::independent);
}

void GOMP_barrier() {
  if (const team::Libgomp* const own = team::libgomp()) return own->barrier();
  team::barrier();
}

int omp_get_max_threads() noexcept {
  const team::Libgomp* const own = team::libgomp();
  return own ? own->max_threads() : team::usual_size();
}

int omp_get_num_threads() noexcept {
  const team::Libgomp* const own = team::libgomp();
  return own ? own->num_threads() : team::size();
}

int omp_get_thread_num() noexcept {
  const team::Libgomp* const own = team::libgomp();
  return own ? own->thread_num() : team::number();
}

int omp_in_parallel() noexcept {
  const team::Libgomp* const own = team::libgomp();
  return own ? own->in_parallel() : static_cast<int>(team::inside());
}

void omp_set_num_threads(int threads) noexcept {
  if (const team::Libgomp* const own = team::libgomp()) return own->set_num_threads(threads);
  team::usual_size() = std::max(1, threads);
}

void omp_set_dynamic(int dynamic) noexcept {
  if (const team::Libgomp* const own = team::libgomp()) own->set_dynamic(dynamic);
}

}  // extern "C"
