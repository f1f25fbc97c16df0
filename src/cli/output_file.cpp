#include "cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/error.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// Writes and closes.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return ::close(descriptor) == 0 && text.empty();
}

[[noreturn]] void refuse(const std::string& path) {
  throw Error(ErrorKind::run, fmt::format("cannot write {}", path), "check the folder and the free space");
}

}  // namespace

void write_output(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) refuse(path);
}

void write_page(const fs::path& path, std::string_view page) {
  std::error_code status;
  if (fs::is_directory(path, status))
    throw Error(ErrorKind::usage, fmt::format("{} is a directory", path.string()), "give a file: page.html");
  const fs::path beside = fmt::format("{}.tmp-{}", path.string(), ::getpid());
  // A file or a link of that name, left over or planted, is not written to.
  const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EEXIST)
    throw Error(ErrorKind::run, fmt::format("cannot write {}: {} is in the way", path.string(), beside.string()),
                "remove it");
  if (descriptor < 0) refuse(path.string());
  const bool written = write_all(descriptor, page);
  if (written) fs::rename(beside, path, status);
  if (!written || status) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    refuse(path.string());
  }
}

}  // namespace headroom
