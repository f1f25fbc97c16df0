// Shared libraries that are opened at run time, and their functions by name.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::cuda {

// Where NVIDIA's libraries lie beside the loader's own folders, in the order in which they are searched: `lib` in the
// program's folder or beside it; site-packages/nvidia/*/lib of the virtual environment that is active (VIRTUAL_ENV,
// CONDA_PREFIX); lib64 of CUDA_HOME, CUDA_PATH and /usr/local/cuda. Only folders that are there. Allocates; thread-safe
// as long as no thread changes the environment.
std::vector<std::filesystem::path> library_folders();

// HEADROOM_CUDA_WITHOUT of the environment lists what the backend shall do without, as "cudnn,graphs": whether `part`
// is not listed. Thread-safe as library_folders.
bool part_wanted(std::string_view part);

// The same for a library by its file's name: "libcudnn.so.9" is the part "cudnn".
bool library_wanted(const std::string& name);

// The first of `names` that opens, by the loader's rules and then in library_folders(), for the life of the process
// (these libraries do not survive being closed); null and the loader's reasons when none does.
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
