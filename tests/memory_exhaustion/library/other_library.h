// A library that looks whether it got its memory.
#pragma once

#include <cstddef>

// Each asks for so many bytes and returns what it was told: 0, or the error's number.
extern "C" int other_library_posix_memalign(size_t alignment, size_t bytes);
extern "C" int other_library_mmap(size_t bytes);
