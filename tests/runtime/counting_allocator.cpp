#include "counting_allocator.h"

#include "../sanitized.h"

#if !HEADROOM_SANITIZED

#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<int64_t> calls{0};
thread_local bool in_onednn = false;
thread_local int64_t calls_of_run = 0;
headroom::OnednnCalls onednn;  // only one thread calls oneDNN

void count(size_t bytes) {
  if (!in_onednn) {
    ++calls;
    return;
  }
  ++calls_of_run;
  onednn.largest_bytes = std::max(onednn.largest_bytes, bytes);
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t number, size_t bytes) {
  count(number * bytes);
  return __libc_calloc(number, bytes);
}
void* realloc(void* old, size_t bytes) {
  count(bytes);
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  count(bytes);
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}

// Wraps the library's function, which does the work.
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int number,
                                     const dnnl_exec_arg_t* arguments) {
  static const auto library =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  if (library == nullptr) std::abort();
  calls_of_run = 0;
  in_onednn = true;
  const dnnl_status_t status = library(primitive, stream, number, arguments);
  in_onednn = false;
  ++onednn.runs;
  onednn.most_per_run = std::max(onednn.most_per_run, calls_of_run);
  return status;
}
}

namespace headroom {
bool counts_heap_calls() { return true; }
int64_t heap_calls() { return calls.load(); }
OnednnCalls onednn_calls() { return onednn; }
}  // namespace headroom

#else

namespace headroom {
bool counts_heap_calls() { return false; }
int64_t heap_calls() { return 0; }
OnednnCalls onednn_calls() { return {}; }
}  // namespace headroom

#endif
