// One thread team, shared by our kernels and oneDNN: that of src/team in programs that link it, else libgomp's. The
// std::thread version exists for ThreadSanitizer.
#pragma once

#include <cstdint>
#include <type_traits>

namespace headroom {

// Size of the team for parallel regions that the calling thread starts, at least 1; set it before the first of them.
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

// parallel_for() without the template.
void parallel_ranges(int64_t count, int64_t grain, const RangeBody& body);

// Splits [0, count) into one contiguous range per thread, each except the last a multiple of `grain`, and runs
// body(begin, end, thread) on the team. The split depends only on count, grain and the team's size, so reductions per
// thread, combined in thread order, are reproducible. A single range runs inline. No heap call with OpenMP.
template <typename F>
void parallel_for(int64_t count, int64_t grain, F&& body) {
  std::remove_reference_t<F>& callable = body;
  parallel_ranges(count, grain, RangeBody(callable));
}

}  // namespace headroom
