#include "formats/temporary_place.h"

#include <unistd.h>

#include <system_error>

#include "base/error.h"
#include "base/nameless_file.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// Why files cannot be put there, or nullptr.
const char* problem_of(const fs::path& directory) {
  std::error_code status;
  if (!fs::is_directory(directory, status)) return "is not a directory";
  if (lies_in_memory(directory)) return "is in memory";
  return ::access(directory.c_str(), W_OK | X_OK) == 0 ? nullptr : "cannot be written";
}

}  // namespace

fs::path temporary_place_on_disk(const fs::path& last, const char* purpose) {
  std::error_code status;
  const fs::path first = fs::temp_directory_path(status);
  std::string problems;
  for (const fs::path& directory : {status ? fs::path("/tmp") : first, fs::path("/var/tmp"), last}) {
    const char* problem = problem_of(directory);
    if (!problem) return directory;
    problems += fmt::format("{}{} {}", problems.empty() ? "" : ", ", directory.string(), problem);
  }
  throw Error(ErrorKind::usage, fmt::format("no directory on a disk for {}: {}", purpose, problems),
              "set TMPDIR to a directory on a disk");
}

}  // namespace headroom
