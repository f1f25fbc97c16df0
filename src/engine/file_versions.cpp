#include "engine/file_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <vector>

namespace headroom {
namespace {

namespace fs = std::filesystem;

void add_line(const fs::path& file, std::vector<std::string>& lines) {
  std::error_code missing, unsized, untimed;
  if (!fs::is_regular_file(file, missing)) return;
  const auto bytes = fs::file_size(file, unsized);
  const auto changed = fs::last_write_time(file, untimed).time_since_epoch().count();
  if (!unsized && !untimed) lines.push_back(fmt::format("{} {} {}\n", file.string(), bytes, changed));
}

}  // namespace

std::string file_versions(std::span<const fs::path> places) {
  std::vector<std::string> lines;
  for (const fs::path& place : places) {
    add_line(place, lines);
    std::error_code status;
    for (fs::directory_iterator entry(place, status), end; !status && entry != end; entry.increment(status))
      add_line(entry->path(), lines);
  }
  std::sort(lines.begin(), lines.end());
  std::string versions;
  for (const std::string& line : lines) versions += line;
  return versions;
}

}  // namespace headroom
