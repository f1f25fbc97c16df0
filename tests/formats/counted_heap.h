// Counts the bytes of operator new. One file of a test program includes this, because it replaces the operators.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace headroom::counted_heap {

inline std::atomic<int64_t> live{0}, peak{0};  // bytes
inline std::atomic<int64_t> calls{0};

inline void* allocate(std::size_t size) noexcept {
  void* const memory = std::malloc(size);
  if (memory == nullptr) return nullptr;
  ++calls;
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t seen = peak;
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return memory;
}

inline void* allocate_or_throw(std::size_t size) {
  if (void* const memory = allocate(size)) return memory;
  throw std::bad_alloc();
}

inline void release(void* memory) noexcept {
  if (memory != nullptr) live -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

// The most bytes that a call holds at once.
template <typename Call>
int64_t peak_of(Call call) {
  const int64_t before = live;
  peak = before;
  call();
  return peak - before;
}

}  // namespace headroom::counted_heap

void* operator new(std::size_t size) { return headroom::counted_heap::allocate_or_throw(size); }
void* operator new[](std::size_t size) { return headroom::counted_heap::allocate_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return headroom::counted_heap::allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return headroom::counted_heap::allocate(size);
}
void operator delete(void* memory) noexcept { headroom::counted_heap::release(memory); }
void operator delete[](void* memory) noexcept { headroom::counted_heap::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { headroom::counted_heap::release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { headroom::counted_heap::release(memory); }
