#include "cli/memory_exhaustion.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADROOM_OWN_ALLOCATOR 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEADROOM_OWN_ALLOCATOR 0
#endif
#endif
#ifndef HEADROOM_OWN_ALLOCATOR
#define HEADROOM_OWN_ALLOCATOR 1
#endif

namespace headroom {
namespace {

// Set once an allocation has failed: it is then the cause of an unexpected end.
std::atomic_flag& exhausted() {
  static constinit std::atomic_flag flag;
  return flag;
}

[[noreturn]] void end_without_memory() {
  constexpr std::string_view text = "error: out of memory\n  give a smaller --memory, or free memory\n";
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) ::_exit(1);
  ::_exit(1);
}

void note_exhaustion() {
  exhausted().test_and_set();
  throw std::bad_alloc();
}

void terminate() {
  if (exhausted().test()) end_without_memory();
  __gnu_cxx::__verbose_terminate_handler();
  ::abort();
}

}  // namespace

void end_cleanly_without_memory() {
  std::set_new_handler(note_exhaustion);
  std::set_terminate(terminate);
}

}  // namespace headroom

#if HEADROOM_OWN_ALLOCATOR
namespace headroom {
namespace {

// Whether the code at this return address does not check allocations: the program's own, which could only end anyway,
// or oneDNN's.
bool uses_unchecked(const void* return_address) {
  Dl_info caller{}, own{};
  if (::dladdr(return_address, &caller) == 0 || !caller.dli_fname) return false;
  if (::dladdr(reinterpret_cast<const void*>(&end_without_memory), &own) != 0 && own.dli_fbase == caller.dli_fbase)
    return true;
  const char* const slash = std::strrchr(caller.dli_fname, '/');
  return std::string_view(slash ? slash + 1 : caller.dli_fname).starts_with("libdnnl.");
}

}  // namespace
}  // namespace headroom

// These definitions take precedence over the C library's in every library. oneDNN allocates objects and scratch with
// posix_memalign, and code buffers with mmap; the arena (MAP_POPULATE) reports its own failure. Other libraries, such
// as a GPU's, get the C library's result.
extern "C" int posix_memalign(void** into, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || !std::has_single_bit(alignment)) return EINVAL;
  const int before = errno;  // posix_memalign must not change it
  void* memory = ::aligned_alloc(alignment, bytes);
  errno = before;
  if (!memory && bytes > 0) {
    if (headroom::uses_unchecked(__builtin_return_address(0))) headroom::end_without_memory();
    return ENOMEM;
  }
  *into = memory;
  return 0;
}

extern "C" void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  void* memory = ::mmap64(at, bytes, protection, flags, file, offset);
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_POPULATE) == 0;
  if (memory != MAP_FAILED || errno != ENOMEM || !anonymous) return memory;
  if (headroom::uses_unchecked(__builtin_return_address(0))) headroom::end_without_memory();
  errno = ENOMEM;
  return memory;
}
#endif
