// Counts every heap call of the program: counting versions of malloc and the related functions replace glibc's, which
// operator new and the libraries also call. Calls by oneDNN while it executes a primitive are counted separately.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// False if the allocator is not replaced (sanitizers have their own); every count is then 0.
bool counts_heap_calls();

// Calls so far, of all threads, except oneDNN's.
int64_t heap_calls();

struct OnednnCalls {
  int64_t runs = 0;          // primitives executed
  int64_t most_per_run = 0;  // heap calls of one run
  size_t largest_bytes = 0;  // of one heap call
};

// Of the whole process, for the thread that calls oneDNN.
OnednnCalls onednn_calls();

}  // namespace headroom
