// Counts every heap call of the program: malloc and its kin are replaced by counting ones in front of glibc's, which
// operator new and the libraries call too. Those that oneDNN makes while it executes a primitive are counted apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// False where the allocator is not replaced (sanitizers bring their own): every count is then 0.
bool counts_heap_calls();

// Calls so far, of all threads, but for oneDNN's.
int64_t heap_calls();

struct OnednnCalls {
  int64_t runs = 0;          // primitives executed
  int64_t most_per_run = 0;  // heap calls of one run
  size_t largest_bytes = 0;  // of one heap call
};

// Of the whole process, in the thread that calls oneDNN.
OnednnCalls onednn_calls();

}  // namespace headroom
