// Shared libraries that are opened at run time, and their functions by name.
#pragma once

#include <span>
#include <string>

namespace headroom::cuda {

// The first of `names` that opens, for the life of the process (these libraries do not survive being closed); null and
// the reason when none does.
void* open_library(std::span<const char* const> names, std::string& reason);

// Sets `function` to the library's symbol. False and the reason when it is not there.
bool find_function(void* library, const char* symbol, void** function, std::string& reason);

// The same for a pointer to a function.
template <typename F>
bool find_function(void* library, const char* symbol, F*& function, std::string& reason) {
  void* found = nullptr;
  if (!find_function(library, symbol, &found, reason)) return false;
  function = reinterpret_cast<F*>(found);
  return true;
}

}  // namespace headroom::cuda
