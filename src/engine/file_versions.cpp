#include "engine/file_versions.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

namespace headroom {
namespace {

namespace fs = std::filesystem;

// What a model, its tokenizer and its adapter are read from.
bool is_read(const fs::path& file) {
  constexpr std::string_view kEndings[] = {".json", ".safetensors", ".gguf", ".jinja", ".txt", ".model"};
  return std::find(std::begin(kEndings), std::end(kEndings), file.extension().string()) != std::end(kEndings);
}

// A file that is replaced has another number or was changed later, even if its size and the time of its content agree.
void add_line(const fs::path& file, std::vector<std::string>& lines) {
  struct ::stat found {};
  if (!is_read(file) || ::stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return;
  lines.push_back(fmt::format("{} {} {} {} {}.{} {}.{}\n", file.string(), found.st_dev, found.st_ino, found.st_size,
                              found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ctim.tv_sec,
                              found.st_ctim.tv_nsec));
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
