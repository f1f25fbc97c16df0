#include "other_library.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

int other_library_posix_memalign(size_t alignment, size_t bytes) {
  void* memory = nullptr;
  const int told = posix_memalign(&memory, alignment, bytes);
  if (told == 0) free(memory);
  return told;
}

int other_library_mmap(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  munmap(memory, bytes);
  return 0;
}
