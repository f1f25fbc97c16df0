// A number that identifies the current call stack.
#pragma once

#include <cstdint>

// A hash of the return addresses up to the start of the thread, except those in this library, each relative to its
// module: the same in every run of a program, wherever it is loaded. Allocates nothing; thread-safe.
uint64_t call_stack_hash();
