// One thread team for all: our kernels share it with oneDNN. It is the program's own (src/team), in a program without
// that libgomp's. The std backend exists for ThreadSanitizer.
#pragma once

#include <cstdint>
#include <type_traits>

namespace headroom {

// Size of the team in the regions that the calling thread begins (at least 1); set before the first of them.
void set_threads(int threads);
int threads();

// A borrowed callable: no heap, valid during the call it is passed to.
class RangeBody {
 public:
  template <typename F>
  RangeBody(F& body)  // NOLINT: implicit on purpose
      : object_(&body), call_([](void* object, int64_t begin, int64_t end, int thread) {
          (*static_cast<F*>(object))(begin, end, thread);
        }) {}
  void operator()(int64_t begin, int64_t end, int thread) const { call_(object_, begin, end, thread); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int64_t, int);
};

void parallel_ranges(int64_t count, int64_t grain, const RangeBody& body);

// Splits [0, count) into one contiguous range per thread, each a multiple of `grain` but the last, and runs
// body(begin, end, thread) on the team. The split depends on count, grain and the team's size alone, so that
// reductions per thread, joined in thread order, are reproducible. Runs inline for one range. No heap call.
template <typename F>
void parallel_for(int64_t count, int64_t grain, F&& body) {
  std::remove_reference_t<F>& callable = body;
  parallel_ranges(count, grain, RangeBody(callable));
}

}  // namespace headroom
