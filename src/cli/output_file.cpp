#include "cli/output_file.h"

#include <fstream>

#include "base/error.h"

namespace headroom {

void write_output(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(ErrorKind::run, fmt::format("cannot write {}", path), "check the folder and the free space");
}

void write_page(const std::filesystem::path& path, std::string_view page) {
  namespace fs = std::filesystem;
  std::error_code status;
  if (fs::is_directory(path, status))
    throw Error(ErrorKind::usage, fmt::format("{} is a directory", path.string()), "give a file: page.html");
  fs::path beside = path;
  beside += ".tmp";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << page;
  file.close();
  if (file) fs::rename(beside, path, status);
  if (!file || status) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw Error(ErrorKind::run, fmt::format("cannot write {}", path.string()), "check the folder and the free space");
  }
}

}  // namespace headroom
