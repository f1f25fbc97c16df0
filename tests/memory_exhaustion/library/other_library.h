// A library that checks whether it got its memory.
#pragma once

#include <cstddef>

// Each requests this many bytes and returns the result: 0, or the error number.
extern "C" int other_library_posix_memalign(size_t alignment, size_t bytes);
extern "C" int other_library_mmap(size_t bytes);
