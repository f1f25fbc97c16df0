// A number for where a program is.
#pragma once

#include <cstdint>

// A hash of the return addresses up to the start of the thread, those in this library left out, each relative to its
// module: the same in every run of a program, wherever it is loaded. Allocates nothing; thread safe.
uint64_t call_stack_hash();
