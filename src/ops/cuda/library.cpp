#include "ops/cuda/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

namespace headroom::cuda {
namespace {

std::string last_words() {
  const char* const words = dlerror();
  return words ? words : "no reason given";
}

namespace fs = std::filesystem;

// The folders in `parent`, sorted by name; empty when it cannot be read.
std::vector<fs::path> folders_in(const fs::path& parent) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (fs::directory_iterator at(parent, unreadable), end; !unreadable && at != end; at.increment(unreadable))
    found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool part_wanted(std::string_view part) {
  const char* const left_out = std::getenv("HEADROOM_CUDA_WITHOUT");
  std::istringstream words(left_out ? left_out : "");
  for (std::string word; std::getline(words, word, ',');)
    if (word == part) return false;
  return true;
}

bool library_wanted(const std::string& name) {
  constexpr std::string_view kPrefix = "lib";
  if (!name.starts_with(kPrefix)) return true;
  std::string part = name.substr(kPrefix.size(), name.find('.') - kPrefix.size());
  for (char& c : part) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return part_wanted(part);
}

std::vector<fs::path> library_folders() {
  std::vector<fs::path> candidates;
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  if (!program.empty()) candidates = {program / "lib", program.parent_path() / "lib"};
  for (const char* environment : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* const root = std::getenv(environment);
    for (const fs::path& python : folders_in(root ? fs::path(root) / "lib" : fs::path()))
      for (const fs::path& package : folders_in(python / "site-packages" / "nvidia"))
        candidates.push_back(package / "lib");
  }
  for (const char* environment : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const root = std::getenv(environment)) candidates.push_back(fs::path(root) / "lib64");
  candidates.emplace_back("/usr/local/cuda/lib64");
  std::erase_if(candidates, [&](const fs::path& folder) { return !fs::is_directory(folder, unknown); });
  return candidates;
}

void* open_library(std::span<const char* const> names, std::string& reason) {
  reason.clear();
  const auto open = [&](const fs::path& file) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) reason += (reason.empty() ? "" : "; ") + last_words();
    return library;
  };
  for (const char* name : names) {
    if (!library_wanted(name)) {
      reason = "left out by HEADROOM_CUDA_WITHOUT";
      return nullptr;
    }
    if (void* const library = open(name)) return library;
  }
  std::error_code unknown;
  for (const fs::path& folder : library_folders())
    for (const char* name : names)
      if (fs::exists(folder / name, unknown))
        if (void* const library = open(folder / name)) return library;
  return nullptr;
}

bool find_function(void* library, const char* symbol, void** function, std::string& reason) {
  *function = dlsym(library, symbol);
  if (*function == nullptr) reason = fmt::format("it has no {}: {}", symbol, last_words());
  return *function != nullptr;
}

}  // namespace headroom::cuda
