#include "ops/cuda/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace headroom::cuda {
namespace {

std::string last_words() {
  const char* const words = dlerror();
  return words ? words : "no reason given";
}

}  // namespace

void* open_library(std::span<const char* const> names, std::string& reason) {
  reason.clear();
  for (const char* name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    reason += (reason.empty() ? "" : "; ") + last_words();
  }
  return nullptr;
}

bool find_function(void* library, const char* symbol, void** function, std::string& reason) {
  *function = dlsym(library, symbol);
  if (*function == nullptr) reason = fmt::format("it has no {}: {}", symbol, last_words());
  return *function != nullptr;
}

}  // namespace headroom::cuda
