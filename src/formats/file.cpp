#include "formats/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/nameless_file.h"

namespace headroom {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail(const char* verb, const std::filesystem::path& path, int code) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw Error(ErrorKind::run, fmt::format("cannot {} {}: {}", verb, path.string(), reason(code)),
              full ? "free some space, raise the quota, or write to another disk" : "check the disk and its mount");
}

std::filesystem::file_type type_of(const std::filesystem::path& path) {
  std::error_code status;
  const std::filesystem::file_type type = std::filesystem::status(path, status).type();
  if (type == std::filesystem::file_type::none)
    throw Error(ErrorKind::usage, fmt::format("cannot read {}: {}", path.string(), status.message()),
                "check the path and its permissions");
  return type;
}

}  // namespace

bool is_there(const std::filesystem::path& path) { return type_of(path) != std::filesystem::file_type::not_found; }

bool is_file_there(const std::filesystem::path& path) { return type_of(path) == std::filesystem::file_type::regular; }

File File::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    throw Error(ErrorKind::usage, fmt::format("cannot read {}: {}", path.string(), reason(errno)),
                "check the path and its permissions");
  File file(descriptor, path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail("read", path, errno);
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorKind::usage,
                fmt::format("{} is {}, not a regular file", path.string(),
                            S_ISDIR(status.st_mode) ? "a directory" : "a pipe or device"),
                "give the path of a file");
  return file;
}

File File::create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail("create", path, errno);
  return File(descriptor, path);
}

File File::create_nameless(const std::filesystem::path& directory) {
  const int descriptor = open_nameless(directory, 0);
  if (descriptor < 0) fail("create a file in", directory, errno);
  return File(descriptor, directory / "(a file without a name)");
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail("read", path_, errno);
  return status.st_size;
}

int64_t File::read_some_at(int64_t offset, std::span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(descriptor_, into.data() + done, into.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path_, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<int64_t>(done);
}

void File::read_at(int64_t offset, std::span<std::byte> into) const {
  const int64_t n = read_some_at(offset, into);
  if (n != static_cast<int64_t>(into.size()))
    throw Error(ErrorKind::format,
                fmt::format("{} ends at byte {}, {} bytes were expected from byte {}", path_.string(), offset + n,
                            into.size(), offset),
                "the file is truncated or changed while in use; copy it again");
}

void File::write_at(int64_t offset, std::span<const std::byte> from) {
  size_t done = 0;
  while (done < from.size()) {
    const ssize_t n =
        ::pwrite(descriptor_, from.data() + done, from.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("write", path_, n < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(n);
  }
}

void File::drop_cache(int64_t offset, int64_t bytes) const {
  ::posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_DONTNEED);
}

void File::write_back(int64_t offset, int64_t bytes) {
  // A failure here occurs again, and is reported, in sync().
  ::sync_file_range(descriptor_, offset, bytes,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  drop_cache(offset, bytes);
}

void File::sync() {
  if (::fsync(descriptor_) != 0) fail("write", path_, errno);
}

void File::close() {
  if (descriptor_ < 0) return;
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail("write", path_, errno);
}

std::string read_text_file(const std::filesystem::path& path, int64_t limit_bytes) {
  const File file = File::open(path);
  if (file.size() > limit_bytes)
    throw Error(ErrorKind::format,
                fmt::format("{} has {}, more than the {} expected of such a file", path.string(),
                            format_bytes(file.size()), format_bytes(limit_bytes)),
                "check that the path names the right file");
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string read_system_file(const std::filesystem::path& path) {
  constexpr size_t kPiece = 4096, kMost = 256 * kPiece;
  try {
    const File file = File::open(path);
    std::string text;
    for (size_t size = 0; size < kMost; size = text.size()) {
      text.resize(size + kPiece);
      const auto piece = std::as_writable_bytes(std::span(text)).subspan(size);
      text.resize(size + static_cast<size_t>(file.read_some_at(static_cast<int64_t>(size), piece)));
      if (text.size() < size + kPiece) return text;
    }
    return text;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace headroom
