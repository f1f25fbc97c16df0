// Opens shared libraries at run time and finds their functions by name.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::cuda {

// Where NVIDIA's libraries may be, besides the loader's own folders, in search order: `lib` in the program's folder or
// next to it; site-packages/nvidia/*/lib of the active virtual environment (VIRTUAL_ENV, CONDA_PREFIX); lib64 of
// CUDA_HOME, CUDA_PATH and /usr/local/cuda. Only existing folders. Allocates; thread-safe as long as no thread changes
// the environment.
std::vector<std::filesystem::path> library_folders();

// The environment variable HEADROOM_CUDA_WITHOUT lists parts that the backend must not use, as in "cudnn,graphs".
// Returns whether `part` is not listed. Thread-safe like library_folders.
bool part_wanted(std::string_view part);

// The same for a library's file name: "libcudnn.so.9" is the part "cudnn".
bool library_wanted(const std::string& name);

// The first of `names` that can be opened, by the loader's rules and then in library_folders(). It is never closed,
// because these libraries do not survive that. Null and the loader's reasons when none can be opened.
void* open_library(std::span<const char* const> names, std::string& reason);

// Sets `function` to the library's symbol. Returns false and the reason when there is none.
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
